// SPDX-License-Identifier: MIT
#include <cede/socket.h>

#include "../io/handle.h"
#include "../os/socket.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace cede {

using detail::StreamAccess;
using io::Turn;
using os::Action;
using os::Direction;
using os::SocketAddress;
using os::SocketOption;

namespace {

// The system's kinds stand in the order of the families.
static_assert(static_cast<int>(os::AddressKind::local) == static_cast<int>(AddressFamily::local));

constexpr std::chrono::seconds kShareWithoutDeadline{5};
constexpr std::chrono::milliseconds kLongestPause{100};

Result<void> result_of(int error) noexcept {
  if (error != 0)
    return io::system_error(error);
  return {};
}

Result<SocketAddress> system_address(const Address& address) noexcept {
  os::AddressParts parts;
  parts.kind = static_cast<os::AddressKind>(address.family());
  parts.port = address.port();
  parts.scope = address.scope();
  const auto bytes = address.bytes();
  std::copy(bytes.begin(), bytes.end(), parts.bytes);
  const std::string_view name = address.name();
  std::copy(name.begin(), name.end(), parts.name);
  parts.name_bytes = name.size();
  if (parts.kind == os::AddressKind::other)
    return Errc::invalid_argument;
  return os::address_of(parts);
}

// Of no family if it has no name, or one that no Address holds.
Address address_from(const SocketAddress& address) noexcept {
  const os::AddressParts parts = os::parts_of(address);
  switch (parts.kind) {
  case os::AddressKind::ipv4:
    return Address::ipv4({parts.bytes[0], parts.bytes[1], parts.bytes[2], parts.bytes[3]},
                         parts.port);
  case os::AddressKind::ipv6:
    return Address::ipv6(std::to_array(parts.bytes), parts.port, parts.scope);
  case os::AddressKind::local:
    return Address::local({parts.name, parts.name_bytes}).value_or(Address());
  default:
    return {};
  }
}

Result<Address> address_of(const Stream& stream, int (*ask)(int, SocketAddress&)) noexcept {
  const io::Handle* handle = StreamAccess::handle(stream);
  if (handle == nullptr)
    return Errc::closed;
  SocketAddress address;
  if (const int error = ask(handle->number, address); error != 0)
    return io::system_error(error);
  return address_from(address);
}

Result<void> set(const Stream& stream, SocketOption option, bool value) noexcept {
  const io::Handle* handle = StreamAccess::handle(stream);
  if (handle == nullptr)
    return Errc::closed;
  return result_of(os::set(handle->number, option, value));
}

// A socket that has the address.
Result<int> open_bound(const Address& address, os::SocketType type,
                       const ListenerOptions& options) noexcept {
  const Result<SocketAddress> place = system_address(address);
  if (!place)
    return place.error();
  const os::Opened opened = os::open_socket(*place, type);
  if (opened.error != 0)
    return io::system_error(opened.error);
  const bool is_local = address.family() == AddressFamily::local;
  const auto set_if = [&](bool wanted, SocketOption option, bool value) {
    return wanted && !is_local ? os::set(opened.number, option, value) : 0;
  };
  int error = set_if(options.reuse_address, SocketOption::reuse_address, true);
  if (error == 0)
    error = set_if(options.reuse_port, SocketOption::reuse_port, true);
  if (error == 0)
    error = set_if(address.family() == AddressFamily::ipv6, SocketOption::only_v6, options.only_v6);
  if (error == 0)
    error = os::bind(opened.number, *place);
  if (error == 0 && type == os::SocketType::stream)
    error = os::listen(opened.number, options.backlog);
  if (error == 0)
    return opened.number;
  os::close_descriptor(opened.number);
  return io::system_error(error);
}

// The time by which one address of so many that are left has to answer.
Deadline share_of(Deadline deadline, std::size_t left) noexcept {
  if (left == 1)
    return deadline;
  if (deadline.is_forever())
    return after(kShareWithoutDeadline);
  return after((deadline.time() - now()) / static_cast<std::int64_t>(left));
}

bool may_try_next(std::error_code error) noexcept {
  return error == Errc::timed_out ||
         (error.category() == std::system_category() && os::is_unreachable(error.value()));
}

} // namespace

Result<Socket> Socket::adopt(int number, detail::Place made) noexcept {
  Result<io::Handle*> handle = io::make_handle(number, made);
  if (!handle)
    return handle.error();
  return Socket(*handle);
}

Result<Socket> Socket::own(int number, detail::Place made) noexcept {
  Result<io::Handle*> handle = io::own(number, made);
  if (!handle)
    return handle.error();
  return Socket(*handle);
}

Result<Socket> Socket::connect(const Address& to, Deadline deadline, detail::Place made) {
  Result<SocketAddress> address = system_address(to);
  if (!address)
    return address.error();
  for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongestPause)) {
    const os::Opened opened = os::open_socket(*address, os::SocketType::stream);
    if (opened.error != 0)
      return io::system_error(opened.error);
    Result<Socket> socket = own(opened.number, made);
    if (!socket)
      return socket;
    os::set(opened.number, SocketOption::no_delay, true);
    Turn turn(socket->handle_, Direction::out);
    if (turn.error())
      return turn.error();
    core::AwaitedOperation operation;
    operation.action = Action::connect;
    operation.address = address->bytes;
    operation.address_bytes = address->size;
    const std::error_code error = turn.carry_out(operation, "connect", deadline);
    if (!error) {
      os::let_wait_inside(*socket->handle_);
      return socket;
    }
    const bool is_full = to.family() == AddressFamily::local && operation.error != 0 &&
                         os::is_queue_full(operation.error);
    if (!is_full)
      return error;
    // Nothing says when the listener has room again.
    if (deadline.time() <= now())
      return Errc::timed_out;
    sleep_until(std::min(deadline, after(pause)));
  }
}

Result<Socket> Socket::connect(std::span<const Address> to, Deadline deadline, detail::Place made) {
  std::error_code last = Errc::invalid_argument;
  for (std::size_t left = to.size(); left > 0; --left) {
    Result<Socket> socket = connect(to[to.size() - left], share_of(deadline, left), made);
    if (socket || !may_try_next(socket.error()))
      return socket;
    last = socket.error();
  }
  return last;
}

Result<std::pair<Socket, Socket>> Socket::pair(detail::Place made) {
  const os::OpenedPair opened = os::open_pair();
  if (opened.error != 0)
    return io::system_error(opened.error);
  Result<Socket> one = own(opened.one, made);
  Result<Socket> other = own(opened.other, made);
  if (!one || !other)
    return one ? other.error() : one.error();
  return std::pair(std::move(*one), std::move(*other));
}

Result<void> Socket::shutdown(Ending which) noexcept {
  if (handle_ == nullptr)
    return Errc::closed;
  return result_of(os::shut_down(handle_->number, static_cast<os::Ending>(which)));
}

Result<Address> Socket::peer_address() const noexcept {
  return address_of(*this, os::peer_address);
}

Result<Address> Socket::local_address() const noexcept {
  return address_of(*this, os::local_address);
}

Result<void> Socket::set_no_delay(bool value) noexcept {
  return set(*this, SocketOption::no_delay, value);
}

Result<void> Socket::set_keep_alive(bool value) noexcept {
  return set(*this, SocketOption::keep_alive, value);
}

Result<Listener> Listener::bind(const Address& address, ListenerOptions options,
                                detail::Place made) {
  const Result<int> number = open_bound(address, os::SocketType::stream, options);
  if (!number)
    return number.error();
  Result<Socket> socket = Socket::own(*number, made);
  if (!socket)
    return socket.error();
  Listener listener;
  listener.stream_ = std::move(*socket);
  return listener;
}

Result<Socket> Listener::accept(Deadline deadline, detail::Place made) {
  Turn turn(StreamAccess::handle(stream_), Direction::in);
  if (turn.error())
    return turn.error();
  if (const auto pause = std::exchange(pause_, {}); pause.count() > 0) {
    sleep_until(std::min(deadline, after(pause)));
    pause_ = pause;
  }
  for (;;) {
    core::AwaitedOperation operation;
    operation.action = Action::accept;
    const std::error_code error = turn.carry_out(operation, "accept", deadline);
    if (!error) {
      pause_ = {};
      Result<Socket> socket = Socket::own(operation.accepted, made);
      if (socket)
        os::set(operation.accepted, SocketOption::no_delay, true);
      return socket;
    }
    if (operation.error != 0 && os::is_exhaustion(operation.error)) {
      pause_ = std::clamp(2 * pause_, std::chrono::milliseconds(1), kLongestPause);
      return error;
    }
    if (operation.error == 0 || !os::concerns_one_connection(operation.error))
      return error;
  }
}

Result<Address> Listener::local_address() const noexcept {
  return stream_.local_address();
}

Result<Datagram> Datagram::bind(const Address& address, ListenerOptions options,
                                detail::Place made) {
  const Result<int> number = open_bound(address, os::SocketType::datagram, options);
  if (!number)
    return number.error();
  Result<Socket> socket = Socket::adopt(*number, made);
  if (!socket) {
    os::close_descriptor(*number);
    return socket.error();
  }
  Datagram datagram;
  datagram.stream_ = std::move(*socket);
  return datagram;
}

Result<Datagram::Received> Datagram::receive_from(std::span<std::byte> into, Deadline deadline) {
  Turn turn(StreamAccess::handle(stream_), Direction::in);
  if (turn.error())
    return turn.error();
  SocketAddress from;
  const os::Buffer buffer{into.data(), into.size()};
  core::AwaitedOperation operation;
  operation.action = Action::receive_from;
  operation.buffers = &buffer;
  operation.buffer_count = 1;
  operation.address = from.bytes;
  operation.address_bytes = sizeof from.bytes;
  if (const std::error_code error = turn.carry_out(operation, "receive", deadline))
    return error;
  from.size = operation.address_bytes;
  return Received{operation.bytes, address_from(from)};
}

Result<void> Datagram::send_to(std::span<const std::byte> bytes, const Address& to,
                               Deadline deadline) {
  Result<SocketAddress> address = system_address(to);
  if (!address)
    return address.error();
  Turn turn(StreamAccess::handle(stream_), Direction::out);
  if (turn.error())
    return turn.error();
  const os::Buffer buffer{const_cast<std::byte*>(bytes.data()), bytes.size()};
  core::AwaitedOperation operation;
  operation.action = Action::send_to;
  operation.buffers = &buffer;
  operation.buffer_count = 1;
  operation.address = address->bytes;
  operation.address_bytes = address->size;
  if (const std::error_code error = turn.carry_out(operation, "send", deadline))
    return error;
  return {};
}

Result<Address> Datagram::local_address() const noexcept {
  return stream_.local_address();
}

Result<void> Datagram::set_broadcast(bool value) noexcept {
  return set(stream_, SocketOption::broadcast, value);
}

} // namespace cede
