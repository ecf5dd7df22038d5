// SPDX-License-Identifier: MIT
// Loads shared objects that each hold a cede of their own, or share one, and runs them on two
// threads.
#include <dlfcn.h>

#include <cstdio>
#include <thread>

namespace {

int run(const char* path) {
  void* object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  auto* run = reinterpret_cast<int (*)()>(dlsym(object, "run"));
  return run == nullptr ? 1 : run();
}

} // namespace

int main(int argc, char** argv) {
  int failed = argc < 2;
  for (int i = 1; i < argc; ++i) {
    failed += run(argv[i]);
    std::thread([&] { failed += run(argv[i]); }).join();
  }
  return failed;
}
