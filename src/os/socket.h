// SPDX-License-Identifier: MIT
// The system's sockets. Addresses are the system's own, as bytes. Numbers of errors are 0 where
// there is none. Layer os.
#pragma once

#include "descriptor.h"

#include <cstddef>
#include <cstdint>

namespace cede::os {

enum class SocketType : std::uint8_t { stream, datagram };

// Room for an address of any kind.
struct alignas(8) SocketAddress {
  std::byte bytes[128] = {};
  std::uint32_t size = 0;
};

enum class AddressKind : std::uint8_t { other, ipv4, ipv6, local };

// What an address says: that of IPv4 in the first four bytes; the name of a local one, which is in
// no file system if it begins with '@'.
struct AddressParts {
  AddressKind kind = AddressKind::other;
  std::uint16_t port = 0;
  std::uint32_t scope = 0;
  std::uint8_t bytes[16] = {};
  char name[108] = {};
  std::size_t name_bytes = 0;
};
SocketAddress address_of(const AddressParts& parts) noexcept;
// A local socket that has no name has a name of no bytes.
AddressParts parts_of(const SocketAddress& address) noexcept;

// For addresses of that one's kind. It doesn't block, and is closed on exec.
Opened open_socket(const SocketAddress& address, SocketType type) noexcept;

int bind(int number, const SocketAddress& address) noexcept;
int listen(int number, int backlog) noexcept;

enum class SocketOption : std::uint8_t {
  reuse_address,
  reuse_port,
  only_v6,
  no_delay, // no effect where there is none
  keep_alive,
  broadcast,
};
int set(int number, SocketOption option, bool value) noexcept;

int local_address(int number, SocketAddress& address) noexcept;
int peer_address(int number, SocketAddress& address) noexcept;

enum class Ending : std::uint8_t { reading, writing, both };
int shut_down(int number, Ending which) noexcept;

struct OpenedPair {
  int one = -1;
  int other = -1;
  int error = 0;
};
OpenedPair open_pair() noexcept;

// What an error of accept says: nothing of the listener, only of one connection; or that there is
// no room for one more.
bool concerns_one_connection(int error) noexcept;
bool is_exhaustion(int error) noexcept;
// What an error of connect says: another address may do.
bool is_unreachable(int error) noexcept;
// A local listener's queue is full.
bool is_queue_full(int error) noexcept;

} // namespace cede::os
