// SPDX-License-Identifier: MIT
// Where sockets are: an IPv4 or IPv6 address with a port, or a local name.
#pragma once

#include <cede/result.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cede {

enum class AddressFamily : std::uint8_t { none, ipv4, ipv6, local };

// A value, to be copied and compared. Addresses of IPv6 may carry a scope, the number of a network
// interface; local ones are paths, or with a leading '@' names in no file system.
//   Thread    any
class Address {
public:
  static constexpr std::size_t kMostNameBytes = 107;

  constexpr Address() noexcept = default; // of no family

  static Address ipv4(std::array<std::uint8_t, 4> bytes, std::uint16_t port) noexcept;
  static Address ipv6(std::array<std::uint8_t, 16> bytes, std::uint16_t port,
                      std::uint32_t scope = 0) noexcept;
  //   Fails     invalid_argument: it is empty, longer than kMostNameBytes or has a zero in it
  static Result<Address> local(std::string_view name) noexcept;

  static Address loopback(std::uint16_t port) noexcept { return ipv4({127, 0, 0, 1}, port); }
  static Address loopback_v6(std::uint16_t port) noexcept;
  // All of this machine's, to listen on.
  static Address any(std::uint16_t port) noexcept { return ipv4({}, port); }
  static Address any_v6(std::uint16_t port) noexcept { return ipv6({}, port); }

  // From "127.0.0.1:80", "[::1]:80", "[fe80::1%2]:80", ":80" for any(80), "unix:/run/it" or
  // "unix:@name". It looks up no names.
  //   Fails     invalid_argument
  static Result<Address> parse(std::string_view text) noexcept;
  // The same again; "(none)" for one of no family.
  std::string to_string() const;

  AddressFamily family() const noexcept { return family_; }
  std::uint16_t port() const noexcept { return port_; }
  std::uint32_t scope() const noexcept { return scope_; }
  Address with_port(std::uint16_t port) const noexcept;
  // A local one's name.
  std::string_view name() const noexcept;
  // Of IPv4 the first four.
  std::array<std::uint8_t, 16> bytes() const noexcept;
  bool is_any() const noexcept;
  bool is_loopback() const noexcept;

  friend bool operator==(const Address&, const Address&) noexcept = default;
  friend std::strong_ordering operator<=>(const Address&, const Address&) noexcept = default;

private:
  AddressFamily family_ = AddressFamily::none;
  std::uint8_t size_ = 0; // of a name
  std::uint16_t port_ = 0;
  std::uint32_t scope_ = 0;
  std::array<char, kMostNameBytes> data_{}; // bytes or a name; zero behind it
};

} // namespace cede

template <>
struct std::hash<cede::Address> {
  std::size_t operator()(const cede::Address& address) const noexcept;
};
