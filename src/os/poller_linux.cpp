// SPDX-License-Identifier: MIT
// Which of Linux' pollers it is. Layer os.
#include "poller.h"

#include <cerrno>

namespace cede::os {

MadePoller make_poller(PollerKind kind) noexcept {
#if CEDE_HAS_LIBURING
  if (kind == PollerKind::io_uring)
    return make_uring_poller();
#else
  if (kind == PollerKind::io_uring)
    return {nullptr, ENOSYS};
#endif
  return make_epoll_poller();
}

} // namespace cede::os
