// SPDX-License-Identifier: MIT
// Sockets: connections, what accepts them, and datagrams.
#pragma once

#include <cede/address.h>
#include <cede/stream.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace cede {

// One end of a connection over TCP or of a local one.
//
//   cede::Result<cede::Socket> socket = cede::Socket::connect(address, cede::after(5s));
//   if (socket && socket->write_all("ping\n")) ...
//
// Small writes are sent at once: no_delay is set.
class Socket : public Stream {
public:
  Socket() noexcept = default;

  // Connects to the address.
  //   Blocks    the calling fiber
  //   Fails     timed_out, cancelled; what the system says: connection_refused and its like
  //   Throws    Cancelled
  static Result<Socket> connect(const Address& to, Deadline deadline = kForever,
                                detail::Place made = CEDE_CALLER);
  // Connects to the first of them that can be reached, in their order, with a new socket each. One
  // that says nothing is given up after its share of the time that is left; without a deadline,
  // after 5 s. The last gets what is left. It goes on to the next after connection_refused,
  // network_unreachable, host_unreachable and timed_out; any other error ends it.
  //   Fails     as the last that was tried; invalid_argument if there is none
  static Result<Socket> connect(std::span<const Address> to, Deadline deadline = kForever,
                                detail::Place made = CEDE_CALLER);

  // Two that are connected with each other.
  static Result<std::pair<Socket, Socket>> pair(detail::Place made = CEDE_CALLER);

  // A connection that the program has from elsewhere.
  static Result<Socket> adopt(int number, detail::Place made = CEDE_CALLER) noexcept;

  // Ends one direction or both: the other end reads what was sent, and then the end; reads here
  // give the end. Whoever waits for it goes on.
  //   Fails     closed; what the system says
  enum class Ending : std::uint8_t { reading, writing, both };
  Result<void> shutdown(Ending which = Ending::writing) noexcept;

  // Of the other end, and of this one.
  //   Fails     closed; what the system says
  Result<Address> peer_address() const noexcept;
  Result<Address> local_address() const noexcept;

  Result<void> set_no_delay(bool value) noexcept;
  Result<void> set_keep_alive(bool value) noexcept;

private:
  friend class Listener;
  using Stream::Stream;
  static Result<Socket> own(int number, detail::Place made) noexcept;
};

struct ListenerOptions {
  bool reuse_address = true; // a port that is still waiting out an earlier connection may be had
  bool reuse_port = false;   // several listeners share it, and the connections
  bool only_v6 = true;       // an IPv6 one doesn't take IPv4's too
  int backlog = 1024;        // connections that wait to be accepted; the system may allow fewer
};

// Accepts connections.
//
//   cede::Listener listener = cede::Listener::bind(cede::Address::any(7000)).value();
//   while (cede::Result<cede::Socket> socket = listener.accept())
//     group.spawn([peer = std::move(*socket)]() mutable { serve(peer); });
class Listener {
public:
  Listener() noexcept = default; // closed

  // Takes the address; port 0 is one that is free. A local address's file stays after it.
  //   Fails     what the system says: address_in_use and its like
  static Result<Listener> bind(const Address& address, ListenerOptions options = {},
                               detail::Place made = CEDE_CALLER);

  // The next connection. What fails before it is accepted is passed over. Without descriptors or
  // memory for it, it fails with what the system says, and the next call waits for a while before
  // it tries again, up to 100 ms: a loop that goes on finds them when they are there.
  //   Blocks    the calling fiber
  //   Fails     closed, busy, timed_out, cancelled; what the system says
  //   Throws    Cancelled
  Result<Socket> accept(Deadline deadline = kForever, detail::Place made = CEDE_CALLER);

  bool is_open() const noexcept { return stream_.is_open(); }
  Result<Address> local_address() const noexcept;
  // Whoever waits in accept() fails with closed.
  Result<void> close() noexcept { return stream_.close(); }
  int native_handle() const noexcept { return stream_.native_handle(); }

private:
  Socket stream_;
  std::chrono::milliseconds pause_{0}; // before the next try
};

// A socket for datagrams.
class Datagram {
public:
  Datagram() noexcept = default; // closed

  // Takes the address; port 0 is one that is free.
  //   Fails     what the system says
  static Result<Datagram> bind(const Address& address, ListenerOptions options = {},
                               detail::Place made = CEDE_CALLER);

  struct Received {
    std::size_t bytes = 0;
    Address from;
  };
  // The next one. Of one that is longer than `into` the rest is lost.
  //   Blocks    the calling fiber
  //   Fails     closed, busy, timed_out, cancelled; what the system says
  //   Throws    Cancelled
  Result<Received> receive_from(std::span<std::byte> into, Deadline deadline = kForever);
  // Sends one, whole.
  //   As receive_from
  Result<void> send_to(std::span<const std::byte> bytes, const Address& to,
                       Deadline deadline = kForever);

  bool is_open() const noexcept { return stream_.is_open(); }
  Result<Address> local_address() const noexcept;
  Result<void> set_broadcast(bool value) noexcept;
  Result<void> close() noexcept { return stream_.close(); }
  int native_handle() const noexcept { return stream_.native_handle(); }

private:
  Socket stream_;
};

} // namespace cede
