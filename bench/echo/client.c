/* SPDX-License-Identifier: MIT
 * The client of all echo servers: so many connections, each with one message of 64 bytes on its way,
 * and a rate that is the same for every server. It prints how many messages came back in the time
 * that counts, and what processor time the server took for them, by the system's count.
 *
 *   client PORT PID CONNECTIONS SECONDS RATE      a second, of all connections; 0: as fast as it goes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 64, kEvents = 1024 };

struct connection {
  int number;
  int received; /* of the message that is on its way */
};

static void fail(const char *what) {
  perror(what);
  exit(1);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Of all the server's threads: the first field is nanoseconds. */
static uint64_t processor_time(int pid) {
  char path[64];
  unsigned long long spent = 0;
  snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
  FILE *file = fopen(path, "r");
  if (file == NULL || fscanf(file, "%llu", &spent) != 1)
    fail(path);
  fclose(file);
  return spent;
}

static int open_connection(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int number = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  if (number < 0 || connect(number, (struct sockaddr *)&address, sizeof address) != 0)
    fail("connect");
  setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(number, F_SETFL, O_NONBLOCK);
  return number;
}

static void send_message(struct connection *to) {
  static const char message[kBytes];
  to->received = 0;
  if (send(to->number, message, kBytes, MSG_NOSIGNAL) != kBytes)
    fail("send");
}

int main(int count, char **words) {
  if (count != 6) {
    fprintf(stderr, "client PORT PID CONNECTIONS SECONDS RATE\n");
    return 2;
  }
  const int port = atoi(words[1]), pid = atoi(words[2]), connections = atoi(words[3]);
  const double seconds = atof(words[4]), rate = atof(words[5]);
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);

  struct connection *all = calloc((size_t)connections, sizeof *all);
  struct connection **idle = calloc((size_t)connections, sizeof *idle);
  const int epoll = epoll_create1(0);
  for (int i = 0; i < connections; ++i) {
    all[i].number = open_connection(port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
    epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].number, &event);
    idle[i] = &all[i];
  }

  int idle_count = connections;
  uint64_t sent = 0, done = 0, done_before = 0, spent_before = 0;
  const uint64_t begin = now(), warm = begin + 300000000u;
  const uint64_t end = warm + (uint64_t)(seconds * 1e9);
  for (;;) {
    const uint64_t time = now();
    if (spent_before == 0 && time >= warm) {
      done_before = done;
      spent_before = processor_time(pid);
    }
    if (time >= end)
      break;
    const uint64_t due = rate == 0 ? UINT64_MAX : (uint64_t)((double)(time - begin) * rate / 1e9);
    while (idle_count > 0 && sent < due) {
      send_message(idle[--idle_count]);
      ++sent;
    }
    struct epoll_event events[kEvents];
    const int ready = epoll_wait(epoll, events, kEvents, rate == 0 ? 100 : 0);
    for (int i = 0; i < ready; ++i) {
      struct connection *from = events[i].data.ptr;
      char bytes[kBytes];
      const ssize_t got = recv(from->number, bytes, (size_t)(kBytes - from->received), 0);
      if (got < 0 && errno == EAGAIN)
        continue;
      if (got <= 0)
        fail("receive");
      from->received += (int)got;
      if (from->received == kBytes) {
        ++done;
        idle[idle_count++] = from;
      }
    }
  }
  printf("%llu %llu\n", (unsigned long long)(done - done_before),
         (unsigned long long)(processor_time(pid) - spent_before));
  return 0;
}
