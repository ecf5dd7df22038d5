// SPDX-License-Identifier: MIT
// What the system says of this program's memory, from /proc. Empty or 0 where there is none, or
// where it tells of an emulator's.
#pragma once

#include "environment.h"

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace cede::test {

inline std::size_t count_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);)
    ++lines;
  return lines;
}

inline std::size_t resident_bytes() {
  if (kEmulated)
    return 0;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::size_t kilobytes = 0; word == "VmRSS:" && status >> kilobytes)
      return kilobytes * 1024;
  return 0;
}

// The flags of the mapping that holds `address`, as in /proc/self/smaps: "rd wr mr nh ".
inline std::string mapping_flags(const void* address) {
  if (kEmulated)
    return {};
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream smaps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::uintptr_t low = 0, high = 0;
    char dash = 0;
    if (words >> std::hex >> low >> dash >> high && dash == '-')
      inside = wanted >= low && wanted < high;
    else if (inside && line.rfind("VmFlags:", 0) == 0)
      return line.substr(8) + " ";
  }
  return {};
}

} // namespace cede::test
