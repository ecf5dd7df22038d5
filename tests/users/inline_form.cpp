// SPDX-License-Identifier: MIT
// The inline form of the switch in code that users' compilers make: one self-checking program,
// which ci/users-flags builds with many flags against one library. It prints what failed and
// returns 1, or nothing and 0.
//
// The method: one side keeps values in as many registers as the compiler has and transfers; the
// other overwrites every register and flag just before it transfers back. Whatever the compiler
// believed to survive, and the statement did not declare, comes back wrong.
#include <cede/process.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include <alloca.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#endif

namespace {

using cede::Next;
using cede::Process;
using cede::transfer;

int failures = 0;

[[gnu::noinline]] void expect(bool is_right, const char* what, long detail = 0) {
  if (is_right)
    return;
  ++failures;
  std::printf("  wrong: %s (%ld)\n", what, detail);
}

// Overwrites what a called function may, and every callee-saved register too: the compiler saves
// those around the statement, as if it were a call of a function that ruins everything.
#if defined(__x86_64__)
#ifdef __AVX512F__
#define DIRTY_WIDE                                                                                 \
  "vpternlogd $0xff, %%zmm16, %%zmm16, %%zmm16\n\tvmovdqa64 %%zmm16, %%zmm17\n\t"                  \
  "vmovdqa64 %%zmm16, %%zmm18\n\tvmovdqa64 %%zmm16, %%zmm19\n\tvmovdqa64 %%zmm16, %%zmm20\n\t"     \
  "vmovdqa64 %%zmm16, %%zmm21\n\tvmovdqa64 %%zmm16, %%zmm22\n\tvmovdqa64 %%zmm16, %%zmm23\n\t"     \
  "vmovdqa64 %%zmm16, %%zmm24\n\tvmovdqa64 %%zmm16, %%zmm25\n\tvmovdqa64 %%zmm16, %%zmm26\n\t"     \
  "vmovdqa64 %%zmm16, %%zmm27\n\tvmovdqa64 %%zmm16, %%zmm28\n\tvmovdqa64 %%zmm16, %%zmm29\n\t"     \
  "vmovdqa64 %%zmm16, %%zmm30\n\tvmovdqa64 %%zmm16, %%zmm31\n\t"                                   \
  "kxnorw %%k0, %%k0, %%k0\n\tkmovw %%k0, %%k1\n\tkmovw %%k0, %%k2\n\tkmovw %%k0, %%k3\n\t"        \
  "kmovw %%k0, %%k4\n\tkmovw %%k0, %%k5\n\tkmovw %%k0, %%k6\n\tkmovw %%k0, %%k7\n\t"
#define DIRTY_WIDE_CLOBBERS                                                                        \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25",      \
      "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5",    \
      "k6", "k7"
#else
#define DIRTY_WIDE
#define DIRTY_WIDE_CLOBBERS
#endif
#define DIRTY_X87                                                                                  \
  "fninit\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfninit\n\t"

// The word that travels stays alive in a register of the compiler's choice.
[[gnu::always_inline]] inline void dirty_registers() {
  asm volatile(DIRTY_X87 "pcmpeqd %%xmm0, %%xmm0\n\tmovdqa %%xmm0, %%xmm1\n\t"
                         "movdqa %%xmm0, %%xmm2\n\tmovdqa %%xmm0, %%xmm3\n\t"
                         "movdqa %%xmm0, %%xmm4\n\tmovdqa %%xmm0, %%xmm5\n\t"
                         "movdqa %%xmm0, %%xmm6\n\tmovdqa %%xmm0, %%xmm7\n\t"
                         "movdqa %%xmm0, %%xmm8\n\tmovdqa %%xmm0, %%xmm9\n\t"
                         "movdqa %%xmm0, %%xmm10\n\tmovdqa %%xmm0, %%xmm11\n\t"
                         "movdqa %%xmm0, %%xmm12\n\tmovdqa %%xmm0, %%xmm13\n\t"
                         "movdqa %%xmm0, %%xmm14\n\tmovdqa %%xmm0, %%xmm15\n\t" DIRTY_WIDE
                         "movq $-1, %%rax\n\tmovq %%rax, %%rcx\n\tmovq %%rax, %%r8\n\t"
                         "movq %%rax, %%r9\n\tmovq %%rax, %%r10\n\tmovq %%rax, %%r11\n\t"
                         "movq %%rax, %%r12\n\tmovq %%rax, %%r13\n\tmovq %%rax, %%r14\n\t"
                         "movq %%rax, %%r15\n\taddq %%rax, %%rcx"
               :
               :
               : "rax", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1",
                 "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                 "xmm12", "xmm13", "xmm14", "xmm15", "st", "st(1)", "st(2)", "st(3)", "st(4)",
                 "st(5)", "st(6)", "st(7)", "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7",
                 "cc", "memory" DIRTY_WIDE_CLOBBERS);
}
#elif defined(__aarch64__)
#ifdef __ARM_FEATURE_SVE
#define DIRTY_PREDICATES                                                                           \
  ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"                                         \
  "pfalse p\\number\\().b\n\t"                                                                     \
  ".endr\n\t"
#define DIRTY_PREDICATE_CLOBBERS                                                                   \
  , "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", \
      "p15"
#else
#define DIRTY_PREDICATES
#define DIRTY_PREDICATE_CLOBBERS
#endif

// The same. x19 and x29 can't be overwritten: they travel.
[[gnu::always_inline]] inline void dirty_registers() {
  asm volatile(DIRTY_PREDICATES ".irp number, 3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,20,21,22,23,24,"
                                "25,26,27,28,30\n\t"
                                "mvn x\\number, xzr\n\t"
                                ".endr\n\t"
                                ".irp number, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,"
                                "21,22,23,24,25,26,27,28,29,30,31\n\t"
                                "movi v\\number\\().16b, 0x5a\n\t"
                                ".endr\n\t"
                                "mvn x18, xzr\n\t" // Linux leaves it to programs
                                "msr nzcv, x3"
               :
               :
               : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                 "x16", "x17", "x18", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28",
                 "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
                 "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
                 "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc",
                 "memory" DIRTY_PREDICATE_CLOBBERS);
}
#else
[[gnu::always_inline]] inline void dirty_registers() {}
#endif

struct Sides {
  Process main, worker;
};

// Overwrites everything and transfers back, for ever.
[[gnu::noinline]] void dirty_for_ever(Sides& sides) {
  for (;;) {
    dirty_registers();
    transfer(sides.worker, sides.main);
  }
}

void start_dirtying(Sides& sides) {
  cede::newprocess(sides.worker, [&sides](void*) {
    dirty_for_ever(sides);
    return Next{sides.main};
  }).value();
}

// Values that the compiler can't know.
std::uint64_t seed = 0x9e3779b97f4a7c15;
[[gnu::noinline]] std::uint64_t draw() {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

#define LIST(X)                                                                                    \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

// Sixteen integers live over a transfer, in whatever registers the statement leaves.
[[gnu::noinline]] void keep_integers(Sides& sides) {
#define DECLARE(i) std::uint64_t v##i = draw();
#define RENEW(i) asm volatile("" : "+r"(v##i));
#define SUM(i) +v##i*(2 * i + 1)
  LIST(DECLARE)
  const std::uint64_t before = 0 LIST(SUM);
  for (int n = 0; n < 3; ++n) {
    LIST(RENEW)
    transfer(sides.main, sides.worker);
    LIST(RENEW)
  }
  const std::uint64_t after = 0 LIST(SUM);
  expect(before == after, "sixteen integers");
#undef DECLARE
#undef RENEW
#undef SUM
}

// Any register that a double may be in.
#if defined(__AVX512F__)
#define DOUBLE "v"
#elif defined(__x86_64__)
#define DOUBLE "x"
#elif defined(__aarch64__)
#define DOUBLE "w"
#endif

[[gnu::noinline]] void keep_doubles(Sides& sides) {
#define DECLARE(i) double d##i = static_cast<double>(draw() >> 12);
#define RENEW(i) asm volatile("" : "+" DOUBLE(d##i));
#define SUM(i) +d##i*(2 * i + 1)
#ifdef DOUBLE
  LIST(DECLARE)
  const double before = 0 LIST(SUM);
  for (int n = 0; n < 3; ++n) {
    LIST(RENEW)
    transfer(sides.main, sides.worker);
    LIST(RENEW)
  }
  const double after = 0 LIST(SUM);
  expect(before == after, "sixteen doubles");
#endif
#undef DECLARE
#undef RENEW
#undef SUM
}

// The x87 stack, MMX and mask registers, which compilers use when they are told to.
[[gnu::noinline]] void keep_rare_registers(Sides& sides) {
  long double a = static_cast<long double>(draw()), b = a / 3, c = b / 7, d = c * b;
  const long double before = a + b + c + d;
#if defined(__x86_64__)
#define DECLARE(i) __m64 m##i = _mm_cvtsi64_m64(static_cast<long long>(draw()));
#define RENEW(i) asm volatile("" : "+y"(m##i));
#define SUM(i) +static_cast<std::uint64_t>(_mm_cvtm64_si64(m##i)) * (2 * i + 1)
#define LIST_OF_EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
  transfer(sides.main, sides.worker);
  expect(before == a + b + c + d, "long doubles");
  LIST_OF_EIGHT(DECLARE)
  const std::uint64_t mmx_before = 0 LIST_OF_EIGHT(SUM);
  LIST_OF_EIGHT(RENEW)
  transfer(sides.main, sides.worker);
  LIST_OF_EIGHT(RENEW)
  const std::uint64_t mmx_after = 0 LIST_OF_EIGHT(SUM);
  _mm_empty();
  expect(mmx_before == mmx_after, "MMX registers");
#undef DECLARE
#undef RENEW
#undef SUM
#else
  transfer(sides.main, sides.worker);
  expect(before == a + b + c + d, "long doubles");
#endif
#if defined(__AVX512F__)
#define DECLARE(i) auto k##i = static_cast<__mmask16>(draw());
#define RENEW(i) asm volatile("" : "+k"(k##i));
#define SUM(i) +k##i*(2 * i + 1)
  LIST_OF_EIGHT(DECLARE)
  const int masks_before = 0 LIST_OF_EIGHT(SUM);
  LIST_OF_EIGHT(RENEW)
  transfer(sides.main, sides.worker);
  LIST_OF_EIGHT(RENEW)
  const int masks_after = 0 LIST_OF_EIGHT(SUM);
  expect(masks_before == masks_after, "mask registers");
#undef DECLARE
#undef RENEW
#undef SUM
#endif
#if defined(__ARM_FEATURE_SVE)
#define DECLARE(i) svbool_t p##i = svwhilelt_b8(std::uint64_t{0}, draw() % 16);
#define RENEW(i) asm volatile("" : "+Upa"(p##i));
#define SUM(i) +svcntp_b8(svptrue_b8(), p##i) * (2 * i + 1)
  LIST(DECLARE)
  const std::uint64_t predicates_before = 0 LIST(SUM);
  LIST(RENEW)
  transfer(sides.main, sides.worker);
  LIST(RENEW)
  const std::uint64_t predicates_after = 0 LIST(SUM);
  expect(predicates_before == predicates_after, "predicates");
#undef DECLARE
#undef RENEW
#undef SUM
#endif
}

// A comparison whose flags could wait over the transfer.
[[gnu::noinline]] void keep_flags(Sides& sides) {
  const std::uint64_t a = draw(), b = draw();
  const bool less = a < b;
  transfer(sides.main, sides.worker);
  expect(less == (a < b) && (less ? a < b : a >= b), "a comparison");
}

// With the observers of a sanitizer, the inline form may not be used: transfer() sees to it.
bool is_inline_allowed(Sides& sides) {
  return execution_of(sides.worker).gate == cede::detail::Gate::suspended;
}

// transfer() without its other path.
[[gnu::always_inline]] inline void switch_directly(Process& from, Process& to) {
  cede::detail::Execution& leaving = execution_of(from);
  cede::detail::Execution& entering = execution_of(to);
#if CEDE_INLINE_SWITCH
  leaving.gate = cede::detail::Gate::suspended;
  entering.gate = cede::detail::Gate::running;
  cede::detail::switch_inline(leaving.context, entering.context, nullptr);
#else
  cede::detail::transfer_out_of_line(leaving, entering, nullptr);
#endif
}

// Memory that the compiler could keep in registers, or store only afterwards.
std::uint64_t shared = 0;
[[gnu::noinline]] void share_memory() {
  Sides sides;
  cede::newprocess(sides.worker, [&sides](void*) {
    for (;;) {
      shared = shared * 3 + 1;
      dirty_registers();
      transfer(sides.worker, sides.main);
    }
    return Next{sides.main};
  }).value();
  shared = 1;
  transfer(sides.main, sides.worker);
  shared += 10;
  const std::uint64_t between = shared;
  transfer(sides.main, sides.worker);
  expect(between == 14 && shared == 43, "memory", static_cast<long>(shared));
  // Where no call on another path tells the compiler that memory changes.
  if (is_inline_allowed(sides)) {
    shared = 2;
    switch_directly(sides.main, sides.worker);
    expect(shared == 7, "memory, with no call near", static_cast<long>(shared));
  }
}

// Frames of a size that only the run knows, and over-aligned ones: rbx or another base register
// reaches the locals, and rsp is not where the compiler left the frame.
[[gnu::noinline]] void keep_alloca(Sides& sides, std::size_t bytes) {
  auto* block = static_cast<unsigned char*>(alloca(bytes));
  alignas(128) std::uint64_t aligned[8];
  for (std::size_t i = 0; i < bytes; ++i)
    block[i] = static_cast<unsigned char>(i * 7 + bytes);
  for (std::uint64_t& value : aligned)
    value = draw();
  std::uint64_t sum = 0;
  for (std::uint64_t value : aligned)
    sum += value;
  asm volatile("" : : "r"(block), "r"(aligned) : "memory");
  transfer(sides.main, sides.worker);
  asm volatile("" : : "r"(block), "r"(aligned) : "memory");
  bool same = true;
  for (std::size_t i = 0; i < bytes; ++i)
    same = same && block[i] == static_cast<unsigned char>(i * 7 + bytes);
  for (std::uint64_t value : aligned)
    sum -= value;
  expect(same, "alloca");
  expect(sum == 0, "an over-aligned local");
  expect(reinterpret_cast<std::uintptr_t>(aligned) % 128 == 0, "alignment");
}

// A leaf but for the transfer: its locals may live below sp, where the switch must not write.
[[gnu::noinline]] std::uint64_t keep_red_zone(Process& from, Process& to, std::uint64_t first) {
  volatile std::uint64_t zone[12];
  for (int i = 0; i < 12; ++i)
    zone[i] = first + static_cast<std::uint64_t>(i);
  switch_directly(from, to);
  std::uint64_t sum = 0;
  for (int i = 0; i < 12; ++i)
    sum += zone[i] - first;
  return sum;
}

[[gnu::noinline]] int recurse(Sides& sides, int depth) {
  const auto local = static_cast<int>(draw() & 0xffff);
  const int copy = local;
  int below = 0;
  if (depth > 0)
    below = recurse(sides, depth - 1);
  transfer(sides.main, sides.worker);
  expect(local == copy, "a local of a recursive function", depth);
  return below + 1;
}

// Exceptions thrown and caught around transfers, by values in registers.
void throw_around() {
  Sides sides;
  cede::newprocess(sides.worker, [&sides](void*) {
    for (std::uint64_t i = 0;; ++i) {
      try {
        dirty_registers();
        transfer(sides.worker, sides.main);
        throw i;
      } catch (std::uint64_t caught) {
        expect(caught == i, "an exception of the other side");
        transfer(sides.worker, sides.main);
      }
    }
    return Next{sides.main};
  }).value();
  const std::uint64_t value = draw();
  for (int i = 0; i < 6; ++i) {
    try {
      transfer(sides.main, sides.worker);
      throw value + 1;
    } catch (std::uint64_t caught) {
      expect(caught == value + 1, "an exception of this side");
    }
  }
}

// A suspended process is destroyed: the statement's second entry throws there.
void unwind() {
  for (int depth : {0, 1, 5}) {
    Process main;
    int destroyed = 0;
    struct Counts {
      int& count;
      std::uint64_t value;
      ~Counts() { count += value != 0; }
    };
    {
      Process worker;
      struct Nest {
        static void down(Process& self, Process& main, int& destroyed, int depth) {
          Counts counts{destroyed, draw() | 1};
          if (depth > 0)
            down(self, main, destroyed, depth - 1);
          else
            transfer(self, main);
          expect(false, "a destroyed process went on");
        }
      };
      cede::newprocess(worker, [&](void*) {
        Nest::down(worker, main, destroyed, depth);
        return Next{main};
      }).value();
      transfer(main, worker);
    }
    expect(destroyed == depth + 1, "destructors of a destroyed process", destroyed);
    expect(std::uncaught_exceptions() == 0, "the exception of a destroyed process");
  }
}

} // namespace

int main() {
  {
    Sides sides;
    start_dirtying(sides);
    transfer(sides.main, sides.worker); // this thread is known from here on
    keep_integers(sides);
    keep_doubles(sides);
    keep_rare_registers(sides);
    for (int i = 0; i < 20; ++i)
      keep_flags(sides);
    for (std::size_t bytes : {1u, 40u, 1000u, 5000u})
      keep_alloca(sides, bytes);
    if (is_inline_allowed(sides))
      expect(keep_red_zone(sides.main, sides.worker, draw()) == 66, "the red zone");
    expect(recurse(sides, 20) == 21, "recursion");
  }
  share_memory();
  throw_around();
  unwind();
  return failures != 0;
}
