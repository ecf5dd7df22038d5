// SPDX-License-Identifier: MIT
#include <cede/channel.h>

namespace cede::detail {

void ChannelState::close() noexcept {
  is_closed = true;
  senders.wake_all(WakeReason::closed);
  receivers.wake_all(WakeReason::closed);
}

} // namespace cede::detail
