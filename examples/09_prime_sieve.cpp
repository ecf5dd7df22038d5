// SPDX-License-Identifier: MIT
// A chain of fibers that grows: each holds one prime and passes on what it doesn't divide.
#include <cede/cede.h>
#include <cstdio>
#include <memory>

using Numbers = std::shared_ptr<cede::Channel<int>>;

// Passes on from `in` what `prime` doesn't divide.
Numbers without_multiples(Numbers in, int prime, cede::Group& sieve) {
  auto out = std::make_shared<cede::Channel<int>>();
  sieve.spawn([in, out, prime] {
    for (const int number : *in)
      if (number % prime != 0)
        out->send(number).value();
  });
  return out;
}

int main() {
  cede::run([] {
    cede::Group sieve; // ends with its scope, wherever its members wait
    auto numbers = std::make_shared<cede::Channel<int>>();
    sieve.spawn([numbers] {
      for (int number = 2;; ++number)
        numbers->send(number).value();
    });
    for (int count = 1; count <= 25; ++count) {
      const int prime = numbers->receive().value();
      std::printf("%d%c", prime, count == 25 ? '\n' : ' ');
      numbers = without_multiples(numbers, prime, sieve);
    }
    std::printf("%zu fibers\n", sieve.size());
  });
}
