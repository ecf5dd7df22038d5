// SPDX-License-Identifier: MIT
#include <cede/address.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace cede {

namespace {

constexpr std::string_view kLocalPrefix = "unix:";
constexpr std::array<std::uint8_t, 16> kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
constexpr int kGroups = 8;

// The whole text as a number; decimal ones have no leading zeros, which some read as octal.
template <class Number>
std::optional<Number> number_of(std::string_view text, int base = 10) noexcept {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  const bool has_zeros = base == 10 && text.size() > 1 && text[0] == '0';
  if (error != std::errc() || stop != end || has_zeros)
    return {};
  return number;
}

std::optional<std::array<std::uint8_t, 4>> ipv4_bytes(std::string_view text) noexcept {
  std::array<std::uint8_t, 4> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t dot = i + 1 < bytes.size() ? text.find('.') : text.size();
    if (dot == std::string_view::npos)
      return {};
    const auto byte = number_of<std::uint8_t>(text.substr(0, dot));
    if (!byte)
      return {};
    bytes[i] = *byte;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return bytes;
}

// Groups of a text without "::", at most eight; `is_end` if nothing comes behind it. How many; none
// if it isn't that.
std::optional<int> read_groups(std::string_view text, bool is_end, std::uint16_t* groups) noexcept {
  int count = 0;
  while (!text.empty()) {
    if (count == kGroups)
      return {};
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view part = text.substr(0, colon);
    if (part.find('.') != std::string_view::npos) { // an IPv4 address stands for the last two
      const auto bytes = ipv4_bytes(part);
      if (!bytes || !is_end || colon != text.size() || count + 2 > kGroups)
        return {};
      groups[count++] = static_cast<std::uint16_t>((*bytes)[0] << 8 | (*bytes)[1]);
      groups[count++] = static_cast<std::uint16_t>((*bytes)[2] << 8 | (*bytes)[3]);
      return count;
    }
    const auto group = number_of<std::uint16_t>(part, 16);
    if (!group || part.size() > 4)
      return {};
    groups[count++] = *group;
    if (colon == text.size())
      return count;
    text.remove_prefix(colon + 1);
    if (text.empty())
      return {}; // it ends in a colon
  }
  return count;
}

std::optional<std::array<std::uint8_t, 16>> ipv6_bytes(std::string_view text) noexcept {
  std::uint16_t front[kGroups] = {};
  std::uint16_t back[kGroups] = {};
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  const auto in_front = read_groups(text.substr(0, gap), !has_gap, front);
  const auto behind = has_gap ? read_groups(text.substr(gap + 2), true, back) : std::optional(0);
  if (!in_front || !behind)
    return {};
  const int count = *in_front + *behind;
  if (has_gap ? count >= kGroups : count != kGroups)
    return {};
  std::copy_n(back, *behind, front + kGroups - *behind);
  std::array<std::uint8_t, 16> bytes{};
  for (std::size_t i = 0; i < kGroups; ++i) {
    bytes[2 * i] = static_cast<std::uint8_t>(front[i] >> 8);
    bytes[2 * i + 1] = static_cast<std::uint8_t>(front[i]);
  }
  return bytes;
}

// As RFC 5952 wants it: the longest run of zero groups, two at least, is "::"; the first of equals.
std::string ipv6_text(const std::array<std::uint8_t, 16>& bytes) {
  int groups[kGroups];
  for (std::size_t i = 0; i < kGroups; ++i)
    groups[i] = bytes[2 * i] << 8 | bytes[2 * i + 1];
  int gap = kGroups;
  int gap_size = 1;
  for (int begin = 0; begin < kGroups; ++begin) {
    const int* end = std::find_if(groups + begin, groups + kGroups, [](int it) { return it != 0; });
    if (const int size = static_cast<int>(end - groups) - begin; size > gap_size) {
      gap = begin;
      gap_size = size;
    }
  }
  std::string text;
  for (int i = 0; i < kGroups;) {
    if (i == gap) {
      text += "::";
      i += gap_size;
      continue;
    }
    char digits[4];
    const auto end = std::to_chars(digits, digits + sizeof digits, groups[i], 16).ptr;
    if (!text.empty() && text.back() != ':')
      text += ':';
    text.append(digits, end);
    ++i;
  }
  return text;
}

} // namespace

Address Address::ipv4(std::array<std::uint8_t, 4> bytes, std::uint16_t port) noexcept {
  Address address;
  address.family_ = AddressFamily::ipv4;
  address.port_ = port;
  std::memcpy(address.data_.data(), bytes.data(), bytes.size());
  return address;
}

Address Address::ipv6(std::array<std::uint8_t, 16> bytes, std::uint16_t port,
                      std::uint32_t scope) noexcept {
  Address address;
  address.family_ = AddressFamily::ipv6;
  address.port_ = port;
  address.scope_ = scope;
  std::memcpy(address.data_.data(), bytes.data(), bytes.size());
  return address;
}

Result<Address> Address::local(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMostNameBytes || name.find('\0') != std::string_view::npos)
    return Errc::invalid_argument;
  Address address;
  address.family_ = AddressFamily::local;
  address.size_ = static_cast<std::uint8_t>(name.size());
  std::memcpy(address.data_.data(), name.data(), name.size());
  return address;
}

Address Address::loopback_v6(std::uint16_t port) noexcept {
  return ipv6(kLoopback, port);
}

Result<Address> Address::parse(std::string_view text) noexcept {
  if (text.starts_with(kLocalPrefix))
    return local(text.substr(kLocalPrefix.size()));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return Errc::invalid_argument;
  const auto port = number_of<std::uint16_t>(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (!port)
    return Errc::invalid_argument;
  if (host.empty())
    return any(*port);
  if (!host.starts_with('[')) {
    const auto bytes = ipv4_bytes(host);
    return bytes ? Result<Address>(ipv4(*bytes, *port)) : Errc::invalid_argument;
  }
  if (!host.ends_with(']'))
    return Errc::invalid_argument;
  host = host.substr(1, host.size() - 2);
  const std::size_t percent = std::min(host.find('%'), host.size());
  const auto bytes = ipv6_bytes(host.substr(0, percent));
  const auto scope = percent == host.size() ? std::optional<std::uint32_t>(0)
                                            : number_of<std::uint32_t>(host.substr(percent + 1));
  if (!bytes || !scope)
    return Errc::invalid_argument;
  return ipv6(*bytes, *port, *scope);
}

std::string Address::to_string() const {
  const std::array<std::uint8_t, 16> b = bytes();
  switch (family_) {
  case AddressFamily::ipv4:
    return std::to_string(b[0]) + '.' + std::to_string(b[1]) + '.' + std::to_string(b[2]) + '.' +
           std::to_string(b[3]) + ':' + std::to_string(port_);
  case AddressFamily::ipv6:
    return '[' + ipv6_text(b) + (scope_ != 0 ? '%' + std::to_string(scope_) : "") +
           "]:" + std::to_string(port_);
  case AddressFamily::local:
    return std::string(kLocalPrefix) + std::string(name());
  default:
    return "(none)";
  }
}

Address Address::with_port(std::uint16_t port) const noexcept {
  Address other = *this;
  if (family_ == AddressFamily::ipv4 || family_ == AddressFamily::ipv6)
    other.port_ = port;
  return other;
}

std::string_view Address::name() const noexcept {
  return {data_.data(), size_};
}

std::array<std::uint8_t, 16> Address::bytes() const noexcept {
  std::array<std::uint8_t, 16> bytes{};
  if (family_ == AddressFamily::ipv4 || family_ == AddressFamily::ipv6)
    std::memcpy(bytes.data(), data_.data(), bytes.size());
  return bytes;
}

bool Address::is_any() const noexcept {
  return *this == any(port_) || *this == any_v6(port_);
}

bool Address::is_loopback() const noexcept {
  return (family_ == AddressFamily::ipv4 && data_[0] == 127) || *this == loopback_v6(port_);
}

} // namespace cede

std::size_t std::hash<cede::Address>::operator()(const cede::Address& address) const noexcept {
  const auto bytes = address.bytes();
  const std::string_view text =
      address.family() == cede::AddressFamily::local
          ? address.name()
          : std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto rest = static_cast<std::size_t>(address.family()) * 0x9E3779B9u + address.port() +
                    (std::size_t{address.scope()} << 16);
  return std::hash<std::string_view>()(text) ^ rest * 0x9E3779B97F4A7C15u;
}
