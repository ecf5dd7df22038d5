// SPDX-License-Identifier: MIT
// The same by cede, a fiber a connection: cede_echo epoll|io_uring. It prints its port.
#include <cede/cede.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <sys/resource.h>
#include <utility>

namespace {

void echo(cede::Socket& socket) {
  std::array<std::byte, 1024> bytes;
  for (;;) {
    const cede::Result<std::size_t> count = socket.read(bytes);
    if (!count || *count == 0 || !socket.write_all(std::span(bytes).first(*count)))
      return;
  }
}

} // namespace

int main(int count, char** words) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  cede::SchedulerOptions options;
  options.backend = count > 1 && std::string_view(words[1]) == "epoll" ? cede::Backend::epoll
                                                                       : cede::Backend::io_uring;
  cede::run(options, [] {
    cede::ListenerOptions many;
    many.backlog = 4096;
    cede::Listener listener = cede::Listener::bind(cede::Address::loopback(0), many).value();
    std::printf("%d\n", listener.local_address().value().port());
    std::fflush(stdout);
    cede::Group connections;
    for (;;)
      connections.spawn([socket = listener.accept().value()]() mutable { echo(socket); });
  });
}
