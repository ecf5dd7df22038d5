// SPDX-License-Identifier: MIT
// A generator that walks a tree by recursion: it yields from any call depth, which a stackless
// coroutine can't. Leaving the loop early unwinds the walk.
#include <cede/cede.h>
#include <cstdio>
#include <memory>

struct Tree {
  int value;
  std::unique_ptr<Tree> left, right;
};

std::unique_ptr<Tree> tree_of(int low, int high) {
  if (low > high)
    return nullptr;
  const int middle = (low + high) / 2;
  return std::make_unique<Tree>(Tree{middle, tree_of(low, middle - 1), tree_of(middle + 1, high)});
}

void walk(const Tree* tree, auto& yield) {
  if (tree == nullptr)
    return;
  walk(tree->left.get(), yield);
  yield(tree->value);
  walk(tree->right.get(), yield);
}

int main() {
  const auto tree = tree_of(1, 1000);
  cede::Generator<int> in_order([&](auto& yield) { walk(tree.get(), yield); });
  for (int value : in_order) {
    if (value > 5)
      break;
    std::printf("%d\n", value);
  }
}
