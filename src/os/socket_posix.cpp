// SPDX-License-Identifier: MIT
#include "socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cede::os {

static_assert(sizeof(sockaddr_storage) <= sizeof SocketAddress::bytes);
static_assert(alignof(sockaddr_storage) <= alignof(SocketAddress));

namespace {

const sockaddr* system_address(const SocketAddress& address) noexcept {
  return reinterpret_cast<const sockaddr*>(address.bytes);
}
sockaddr* system_address(SocketAddress& address) noexcept {
  return reinterpret_cast<sockaddr*>(address.bytes);
}

int error_of(int result) noexcept {
  return result < 0 ? errno : 0;
}

int ask(int (*call)(int, sockaddr*, socklen_t*), int number, SocketAddress& address) noexcept {
  socklen_t size = sizeof address.bytes;
  const int error = error_of(call(number, system_address(address), &size));
  address.size = error == 0 ? size : 0;
  return error;
}

} // namespace

SocketAddress address_of(const AddressParts& parts) noexcept {
  SocketAddress address;
  if (parts.kind == AddressKind::ipv4) {
    sockaddr_in system{};
    system.sin_family = AF_INET;
    system.sin_port = htons(parts.port);
    std::memcpy(&system.sin_addr, parts.bytes, sizeof system.sin_addr);
    std::memcpy(address.bytes, &system, address.size = sizeof system);
  } else if (parts.kind == AddressKind::ipv6) {
    sockaddr_in6 system{};
    system.sin6_family = AF_INET6;
    system.sin6_port = htons(parts.port);
    system.sin6_scope_id = parts.scope;
    std::memcpy(&system.sin6_addr, parts.bytes, sizeof system.sin6_addr);
    std::memcpy(address.bytes, &system, address.size = sizeof system);
  } else if (parts.kind == AddressKind::local) {
    // A path has a zero behind it; a name that is no path begins with one and ends where it ends.
    sockaddr_un system{};
    system.sun_family = AF_UNIX;
    std::memcpy(system.sun_path, parts.name, std::min(parts.name_bytes, sizeof system.sun_path));
    const bool is_path = parts.name[0] != '@';
    if (!is_path)
      system.sun_path[0] = '\0';
    address.size = static_cast<std::uint32_t>(offsetof(sockaddr_un, sun_path) + parts.name_bytes +
                                              (is_path ? 1 : 0));
    std::memcpy(address.bytes, &system, sizeof system);
  }
  return address;
}

AddressParts parts_of(const SocketAddress& address) noexcept {
  AddressParts parts;
  sa_family_t family{};
  if (address.size < sizeof family)
    return parts;
  std::memcpy(&family, address.bytes + offsetof(sockaddr, sa_family), sizeof family);
  if (family == AF_INET && address.size >= sizeof(sockaddr_in)) {
    sockaddr_in system{};
    std::memcpy(&system, address.bytes, sizeof system);
    parts.kind = AddressKind::ipv4;
    parts.port = ntohs(system.sin_port);
    std::memcpy(parts.bytes, &system.sin_addr, sizeof system.sin_addr);
  } else if (family == AF_INET6 && address.size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 system{};
    std::memcpy(&system, address.bytes, sizeof system);
    parts.kind = AddressKind::ipv6;
    parts.port = ntohs(system.sin6_port);
    parts.scope = system.sin6_scope_id;
    std::memcpy(parts.bytes, &system.sin6_addr, sizeof system.sin6_addr);
  } else if (family == AF_UNIX) {
    const auto* name =
        reinterpret_cast<const char*>(address.bytes) + offsetof(sockaddr_un, sun_path);
    const std::size_t room =
        std::min<std::size_t>(address.size - offsetof(sockaddr_un, sun_path), sizeof parts.name);
    parts.kind = AddressKind::local;
    parts.name_bytes = room > 0 && name[0] != '\0' ? strnlen(name, room) : room;
    // A path that begins so is told from a name that is none.
    const std::size_t shift = room > 2 && name[0] == '@' ? 2 : 0;
    parts.name_bytes = std::min(parts.name_bytes, sizeof parts.name - shift);
    std::memcpy(parts.name, "./", shift);
    std::memcpy(parts.name + shift, name, parts.name_bytes);
    parts.name_bytes += shift;
    if (parts.name_bytes > 0 && parts.name[0] == '\0')
      parts.name[0] = '@';
  }
  return parts;
}

Opened open_socket(const SocketAddress& address, SocketType type) noexcept {
  const int kind = type == SocketType::stream ? SOCK_STREAM : SOCK_DGRAM;
  const int number =
      not_standard(socket(system_address(address)->sa_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK,
                          0)); // for connect and accept, which can't be told
  return {number, error_of(number)};
}

int bind(int number, const SocketAddress& address) noexcept {
  return error_of(::bind(number, system_address(address), address.size));
}

int listen(int number, int backlog) noexcept {
  return error_of(::listen(number, backlog));
}

int set(int number, SocketOption option, bool value) noexcept {
  int level = SOL_SOCKET;
  int name = 0;
  switch (option) {
  case SocketOption::reuse_address:
    name = SO_REUSEADDR;
    break;
  case SocketOption::reuse_port:
    name = SO_REUSEPORT;
    break;
  case SocketOption::keep_alive:
    name = SO_KEEPALIVE;
    break;
  case SocketOption::broadcast:
    name = SO_BROADCAST;
    break;
  case SocketOption::only_v6:
    level = IPPROTO_IPV6;
    name = IPV6_V6ONLY;
    break;
  case SocketOption::no_delay:
    level = IPPROTO_TCP;
    name = TCP_NODELAY;
    break;
  }
  const int on = value ? 1 : 0;
  const int error = error_of(setsockopt(number, level, name, &on, sizeof on));
  const bool has_none = error == EOPNOTSUPP || error == ENOPROTOOPT;
  return option == SocketOption::no_delay && has_none ? 0 : error;
}

int local_address(int number, SocketAddress& address) noexcept {
  return ask(getsockname, number, address);
}

int peer_address(int number, SocketAddress& address) noexcept {
  return ask(getpeername, number, address);
}

int shut_down(int number, Ending which) noexcept {
  constexpr int kHow[] = {SHUT_RD, SHUT_WR, SHUT_RDWR};
  return error_of(shutdown(number, kHow[static_cast<int>(which)]));
}

OpenedPair open_pair() noexcept {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return {-1, -1, errno};
  const int one = not_standard(ends[0]);
  const int error = error_of(one);
  const int other = not_standard(ends[1]);
  if (one >= 0 && other >= 0)
    return {one, other, 0};
  const OpenedPair failed{-1, -1, error != 0 ? error : errno};
  close_descriptor(one);
  close_descriptor(other);
  return failed;
}

// Linux hands errors that wait on the new connection to accept.
bool concerns_one_connection(int error) noexcept {
  switch (error) {
  case ECONNABORTED:
  case EPROTO:
  case ENETDOWN:
  case ENOPROTOOPT:
  case EHOSTDOWN:
  case ENONET:
  case EHOSTUNREACH:
  case ENETUNREACH:
  case EPERM: // a firewall's word
    return true;
  default:
    return false;
  }
}

bool is_exhaustion(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

bool is_unreachable(int error) noexcept {
  return error == ECONNREFUSED || error == ENETUNREACH || error == ETIMEDOUT ||
         error == EHOSTUNREACH;
}

bool is_queue_full(int error) noexcept {
  return error == ENOBUFS;
}

} // namespace cede::os
