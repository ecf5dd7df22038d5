/* SPDX-License-Identifier: MIT
 * The same by io_uring alone: receives that go on, into buffers of a ring, and one call a pass.
 * It prints its port. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <liburing.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kBuffers = 4096, kBufferBytes = 4096, kGroup = 1 };
enum kind { kAccept, kReceive, kSend };

static struct io_uring ring;
static struct io_uring_buf_ring *buffers;
static char *memory;

static struct io_uring_sqe *request(enum kind kind, int number, int buffer) {
  struct io_uring_sqe *made;
  while ((made = io_uring_get_sqe(&ring)) == NULL)
    io_uring_submit(&ring);
  made->user_data = (unsigned long long)kind << 60 | (unsigned long long)buffer << 32 |
                    (unsigned long long)number;
  return made;
}

static void receive(int number) {
  struct io_uring_sqe *made = request(kReceive, number, 0);
  const unsigned long long data = made->user_data;
  io_uring_prep_recv_multishot(made, number, NULL, 0, 0);
  made->flags |= IOSQE_BUFFER_SELECT;
  made->buf_group = kGroup;
  made->user_data = data;
}

static void give_back(int buffer) {
  io_uring_buf_ring_add(buffers, memory + (size_t)buffer * kBufferBytes, kBufferBytes,
                        (unsigned short)buffer, io_uring_buf_ring_mask(kBuffers), 0);
  io_uring_buf_ring_advance(buffers, 1);
}

int main(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  struct sockaddr_in address = {.sin_family = AF_INET};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 4096) != 0)
    return 1;
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);

  struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                                IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_CQSIZE,
                                       .cq_entries = 32768};
  if (io_uring_queue_init_params(4096, &ring, &parameters) != 0)
    return 1;
  memory = malloc((size_t)kBuffers * kBufferBytes);
  if (posix_memalign((void **)&buffers, 4096, kBuffers * sizeof(struct io_uring_buf)) != 0)
    return 1;
  struct io_uring_buf_reg group = {.ring_addr = (unsigned long long)(size_t)buffers,
                                   .ring_entries = kBuffers,
                                   .bgid = kGroup};
  if (io_uring_register_buf_ring(&ring, &group, 0) != 0)
    return 1;
  io_uring_buf_ring_init(buffers);
  for (int i = 0; i < kBuffers; ++i)
    give_back(i);
  struct io_uring_sqe *made = request(kAccept, listener, 0);
  const unsigned long long data = made->user_data;
  io_uring_prep_multishot_accept(made, listener, NULL, NULL, 0);
  made->user_data = data;

  for (;;) {
    io_uring_submit_and_wait(&ring, 1);
    struct io_uring_cqe *done;
    unsigned head, count = 0;
    io_uring_for_each_cqe(&ring, head, done) {
      ++count;
      const enum kind kind = (enum kind)(done->user_data >> 60);
      const int number = (int)(unsigned)done->user_data;
      if (kind == kAccept && done->res >= 0) {
        const int on = 1;
        setsockopt(done->res, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        receive(done->res);
      } else if (kind == kReceive && done->res > 0) {
        const int buffer = (int)(done->flags >> IORING_CQE_BUFFER_SHIFT);
        struct io_uring_sqe *answer = request(kSend, number, buffer);
        const unsigned long long answer_data = answer->user_data;
        io_uring_prep_send(answer, number, memory + (size_t)buffer * kBufferBytes,
                           (size_t)done->res, MSG_NOSIGNAL);
        answer->user_data = answer_data;
        if (!(done->flags & IORING_CQE_F_MORE))
          receive(number);
      } else if (kind == kReceive && done->res == -ENOBUFS) {
        receive(number);
      } else if (kind == kReceive) {
        close(number);
      } else if (kind == kSend) {
        give_back((int)(done->user_data >> 32) & 0xfffffff);
      }
    }
    io_uring_cq_advance(&ring, count);
  }
}
