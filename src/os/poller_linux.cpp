// SPDX-License-Identifier: MIT
// Which of Linux' pollers it is. Layer os.
#include "poller.h"

#include <cerrno>

namespace cede::os {

// io_uring is the fastest where it may be used: a kernel may be too old for it, and a sandbox may
// forbid it.
MadePoller make_poller(PollerKind kind) noexcept {
#if CEDE_HAS_LIBURING
  if (kind != PollerKind::epoll) {
    MadePoller made = make_uring_poller();
    if (made.poller != nullptr || kind == PollerKind::io_uring)
      return made;
  }
#else
  if (kind == PollerKind::io_uring)
    return {nullptr, ENOSYS};
#endif
  return make_epoll_poller();
}

} // namespace cede::os
