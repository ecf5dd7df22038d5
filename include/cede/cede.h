// SPDX-License-Identifier: MIT
// All of cede.
#pragma once

#include <cede/address.h>
#include <cede/barrier.h>
#include <cede/blocking.h>
#include <cede/cancel.h>
#include <cede/channel.h>
#include <cede/condition.h>
#include <cede/continuation.h>
#include <cede/event.h>
#include <cede/fiber.h>
#include <cede/fiber_local.h>
#include <cede/generator.h>
#include <cede/group.h>
#include <cede/limit.h>
#include <cede/mutex.h>
#include <cede/process.h>
#include <cede/remote.h>
#include <cede/result.h>
#include <cede/scheduler.h>
#include <cede/select.h>
#include <cede/semaphore.h>
#include <cede/signal.h>
#include <cede/stack.h>
#include <cede/stop.h>
#include <cede/time.h>
#include <cede/timer.h>
#include <cede/waiter.h>
#include <cede/watchdog.h>

#include <cede/detail/config.h>

#if CEDE_HAS_STREAMS
#include <cede/file.h>
#include <cede/line_reader.h>
#include <cede/os_signal.h>
#include <cede/select_stream.h>
#include <cede/socket.h>
#include <cede/stream.h>
#endif
