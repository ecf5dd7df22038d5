// SPDX-License-Identifier: MIT
// Reading and writing where the system can't say when a descriptor is ready: files on disks. Layer
// io.
#pragma once

#include "handle.h"

namespace cede::io {

// As Turn::carry_out, for reads and writes of whatever the handle is.
std::error_code carry_out(Handle& handle, Turn& turn, core::AwaitedOperation& operation,
                          const char* what, Deadline deadline);

} // namespace cede::io
