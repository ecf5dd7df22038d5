// SPDX-License-Identifier: MIT
#include "metrics.h"

#include "fiber.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

namespace cede {

namespace core {

void note_slice(SchedulerMetrics& metrics, const detail::FiberRecord& fiber,
                std::chrono::nanoseconds length) noexcept {
  if (length <= metrics.longest_slice)
    return;
  metrics.longest_slice = length;
  metrics.longest_slice_id = fiber.id;
  const std::string_view name = name_of(fiber);
  metrics.longest_slice_name[name.copy(metrics.longest_slice_name,
                                       sizeof metrics.longest_slice_name - 1)] = '\0';
}

void note_lateness(SchedulerMetrics& metrics, std::chrono::nanoseconds lateness) noexcept {
  const auto microseconds =
      static_cast<std::uint64_t>(std::max<std::int64_t>(lateness.count(), 0)) / 1000;
  const auto place = static_cast<std::size_t>(std::bit_width(microseconds));
  ++metrics.late[std::min(place, metrics.late.size() - 1)];
}

} // namespace core

namespace {

class KeysAndValues {
public:
  void add(std::string_view key, std::string_view value) {
    if (!text_.empty())
      text_ += ' ';
    text_ += key;
    text_ += '=';
    text_ += value;
  }
  void add(std::string_view key, std::uint64_t number) { add(key, std::to_string(number)); }
  void add(std::string_view key, std::chrono::nanoseconds time) {
    add(key, static_cast<std::uint64_t>(time.count()) / 1000);
  }
  // Whatever it holds, it ends at the closing quote and on this line.
  void add_quoted(std::string_view key, std::string_view value) {
    std::string quoted = "\"";
    for (const char letter : value) {
      if (letter == '"' || letter == '\\')
        quoted += '\\';
      quoted += static_cast<unsigned char>(letter) < ' ' ? '?' : letter;
    }
    add(key, quoted + '"');
  }

  std::string take() { return std::move(text_); }

private:
  std::string text_;
};

} // namespace

std::string to_text(const SchedulerMetrics& metrics) {
  KeysAndValues text;
  text.add("alive", metrics.alive);
  text.add("stacks", metrics.stacks);
  text.add("deadlines", metrics.deadlines);
  text.add("spawned", metrics.spawned);
  text.add("switches", metrics.switches);
  text.add("services", metrics.services);
  text.add("idle_waits", metrics.idle_waits);
  text.add("posts_refused", metrics.posts_refused);
  text.add("posts_waiting", metrics.posts_waiting);
  text.add("unhandled_errors", metrics.unhandled_errors);
  text.add("longest_round_us", metrics.longest_round);
  text.add("longest_slice_us", metrics.longest_slice);
  text.add("longest_slice_id", metrics.longest_slice_id);
  text.add_quoted("longest_slice_name", metrics.longest_slice_name);
  std::uint64_t limit = 1;
  for (std::size_t i = 0; i < metrics.late.size() - 1; ++i, limit *= 2)
    if (metrics.late[i] > 0)
      text.add("late_below_" + std::to_string(limit) + "us", metrics.late[i]);
  if (metrics.late.back() > 0)
    text.add("late_above_" + std::to_string(limit / 2) + "us", metrics.late.back());
  return text.take();
}

} // namespace cede
