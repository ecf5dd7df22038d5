/* SPDX-License-Identifier: MIT
 * An echo server by epoll alone, as little as it can be: what is above it is a runtime's price.
 * It prints its port. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0)
    return 1;
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);

  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    static struct epoll_event events[256];
    const int ready = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < ready; ++i) {
      const int number = events[i].data.fd;
      if (number == listener) {
        int accepted;
        while ((accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          const int on = 1;
          setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          struct epoll_event added = {.events = EPOLLIN, .data.fd = accepted};
          epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &added);
        }
        continue;
      }
      char bytes[4096];
      const ssize_t count = recv(number, bytes, sizeof bytes, 0);
      if (count == 0)
        close(number);
      else if (count > 0 && send(number, bytes, (size_t)count, MSG_NOSIGNAL) != count)
        return 1;
    }
  }
}
