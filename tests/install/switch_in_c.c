/* SPDX-License-Identifier: MIT */
/* The out-of-line switch alone, in a C program on a C library that has no ucontext: two stacks, and
   words handed to and fro. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* cede/detail/context.h, and the head of an entry record, as C sees them. */
struct context {
  void *sp, *fp, *resume, *base;
  uint64_t fpenv;
};
struct departure {
  struct context* to;
  void* word;
};
struct head {
  struct departure (*run)(struct head*, void*);
};

void* cede_switch(struct context* from, struct context* to, void* word);
void cede_entry(void);

/* What the library would give. */
void cede_throw_unwind(void) {
  abort();
}
int cede_entry_personality(void) {
  abort();
}

static struct context main_context, other;

static struct departure body(struct head* head, void* word) {
  struct departure last = {&main_context, NULL};
  intptr_t number = (intptr_t)word;
  (void)head;
  while (number < 1000)
    number = (intptr_t)cede_switch(&other, &main_context, (void*)(number + 1));
  last.word = (void*)-1;
  return last;
}

int main(void) {
  static _Alignas(16) unsigned char stack[64 * 1024];
  struct head* head = (struct head*)(stack + sizeof stack - 64);
  intptr_t number = 0, switches = 0;
  head->run = body;
  other.sp = head;
  other.resume = (void*)(uintptr_t)cede_entry;
  other.fpenv = UINT64_C(0x037f00001f80);
  do {
    number = (intptr_t)cede_switch(&main_context, &other, (void*)number);
    ++switches;
  } while (number != -1);
  printf("%ld switches\n", (long)switches);
  return switches == 1001 ? 0 : 1;
}
