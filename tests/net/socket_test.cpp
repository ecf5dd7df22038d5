// SPDX-License-Identifier: MIT
// Rows: C-16 D-19 P-83 P-84
// Field reports: 61 64 65 67 70
// Connections, what accepts them, and datagrams; on the loopback only.
#include "../src/os/socket.h"
#include "support/backends.h"
#include "support/environment.h"

#include <cede/cede.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

using namespace cede;
using namespace cede::test;
using namespace std::chrono_literals;

namespace {

class Sockets : public WithBackend {
protected:
  static Listener listen(const Address& address = Address::loopback(0)) {
    return Listener::bind(address).value();
  }
  static Address address_of(const Listener& listener) { return listener.local_address().value(); }

  // A port on which nobody listens.
  static Address refusing() { return address_of(listen()); }

  // An address that says nothing: a listener whose queue is full.
  struct Silent {
    Listener listener;
    std::vector<Socket> queued;
    Address address;
  };
  static Silent silent() {
    ListenerOptions options;
    options.backlog = 0;
    Silent silent{Listener::bind(Address::loopback(0), options).value(), {}, {}};
    silent.address = address_of(silent.listener);
    for (int i = 0; i < 10; ++i) {
      Result<Socket> socket = Socket::connect(silent.address, after(50ms));
      if (!socket)
        return silent;
      silent.queued.push_back(std::move(*socket));
    }
    ADD_FAILURE() << "it never fills";
    return silent;
  }
};
CEDE_WITH_EACH_BACKEND(Sockets);

std::error_code error_of(const auto& result) {
  return result ? std::error_code() : result.error();
}

// Gives back what comes until the end.
void echo(Socket& socket) {
  std::vector<std::byte> bytes(4096);
  for (;;) {
    const Result<std::size_t> count = socket.read(bytes);
    if (!count || *count == 0)
      return;
    if (!socket.write_all(std::span(bytes).first(*count)))
      return;
  }
}

TEST_P(Sockets, of_each_kind_connect_and_talk) {
  const std::string path = "/tmp/cede_socket_test_" + std::to_string(getpid());
  for (const Address& address :
       {Address::loopback(0), Address::loopback_v6(0), Address::local(path).value(),
        Address::local("@cede_socket_test_" + std::to_string(getpid())).value()})
    run([&] {
      Listener listener = listen(address);
      const Address at = address_of(listener);
      EXPECT_EQ(at.with_port(0), address);
      Fiber<void> server = spawn([&] {
        Socket socket = listener.accept().value();
        EXPECT_EQ(socket.local_address().value(), at);
        echo(socket);
      });
      Socket client = Socket::connect(at).value();
      EXPECT_EQ(client.peer_address().value(), at);
      EXPECT_TRUE(write_text(client, "hello"));
      EXPECT_EQ(read_text(client), "hello");
      client.shutdown().value();
      EXPECT_EQ(read_text(client), "");
      server.join();
    });
  unlink(path.c_str());
}

// It isn't the name in no file system that is written the same way.
TEST(SystemAddress, of_a_path_that_begins_with_an_at_sign_is_a_path) {
  sockaddr_un system{};
  system.sun_family = AF_UNIX;
  std::strcpy(system.sun_path, "@it");
  os::SocketAddress address;
  std::memcpy(address.bytes, &system, sizeof system);
  address.size = static_cast<std::uint32_t>(offsetof(sockaddr_un, sun_path) + 4);
  const os::AddressParts parts = os::parts_of(address);
  EXPECT_EQ(std::string(parts.name, parts.name_bytes), "./@it");
  system.sun_path[0] = '\0';
  std::memcpy(address.bytes, &system, sizeof system);
  address.size -= 1; // such a name has no zero behind it
  const os::AddressParts name = os::parts_of(address);
  EXPECT_EQ(std::string(name.name, name.name_bytes), "@it");
}

TEST_P(Sockets, half_closed_still_receive) {
  run([] {
    auto [one, other] = Socket::pair().value();
    one.shutdown(Socket::Ending::writing).value();
    EXPECT_EQ(read_text(other), "");
    EXPECT_TRUE(write_text(other, "answer"));
    EXPECT_EQ(read_text(one), "answer");
    EXPECT_EQ(one.write_all("x").error, std::errc::broken_pipe);
  });
}

TEST_P(Sockets, that_are_shut_down_wake_who_reads_with_the_end) {
  run([] {
    Listener listener = listen();
    Socket client = Socket::connect(address_of(listener)).value();
    Socket server = listener.accept().value();
    Fiber<std::string> reader = spawn([&] { return read_text(client); });
    yield();
    client.shutdown(Socket::Ending::both).value();
    EXPECT_EQ(reader.join(), "");
  });
}

TEST_P(Sockets, a_listener_that_is_closed_wakes_who_accepts) {
  run([] {
    Listener listener = listen();
    Fiber<Result<Socket>> accepting = spawn([&] { return listener.accept(); });
    yield();
    EXPECT_EQ(error_of(listener.accept()), Errc::busy);
    listener.close().value();
    EXPECT_EQ(error_of(accepting.join()), Errc::closed);
    EXPECT_EQ(error_of(listener.accept()), Errc::closed);
  });
}

TEST_P(Sockets, a_listener_that_was_shut_down_says_so) {
  run([] {
    Listener listener = listen();
    Fiber<Result<Socket>> accepting = spawn([&] { return listener.accept(); });
    yield();
    ::shutdown(listener.native_handle(), SHUT_RDWR); // a hang-up, and nothing to accept
    EXPECT_EQ(error_of(accepting.join()), std::errc::invalid_argument);
  });
}

TEST_P(Sockets, accept_has_a_deadline) {
  run([] {
    Listener listener = listen();
    EXPECT_EQ(error_of(listener.accept(after(5ms))), Errc::timed_out);
    Socket client = Socket::connect(address_of(listener)).value();
    EXPECT_TRUE(listener.accept(now()));
  });
}

TEST_P(Sockets, a_burst_of_connections_before_the_first_accept_is_all_accepted) {
  run([] {
    Listener listener = listen();
    std::vector<Socket> clients;
    for (int i = 0; i < 300; ++i)
      clients.push_back(Socket::connect(address_of(listener)).value());
    for (int i = 0; i < 300; ++i)
      EXPECT_TRUE(listener.accept(after(10s)));
    EXPECT_EQ(error_of(listener.accept(now())), Errc::timed_out);
  });
}

TEST_P(Sockets, two_thousand_connections_are_served_on_one_thread) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t count =
      std::min<std::size_t>(kEmulated || is_observed() ? 100 : 2000, limit.rlim_max / 2 - 50);
  const rlimit raised{std::max<rlim_t>(limit.rlim_cur, 2 * count + 50), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &raised), 0);
  run([count] {
    Listener listener = listen();
    Group servers;
    Fiber<void> acceptor = spawn([&] {
      for (std::size_t i = 0; i < count; ++i)
        servers.spawn([socket = listener.accept().value()]() mutable { echo(socket); });
    });
    std::vector<Socket> clients;
    for (std::size_t i = 0; i < count; ++i)
      clients.push_back(Socket::connect(address_of(listener), after(60s)).value());
    acceptor.join();
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_TRUE(write_text(clients[i], std::to_string(i)));
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(read_text(clients[i], after(60s)), std::to_string(i));
    }
    clients.clear();
    servers.join();
  });
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST_P(Sockets, a_refused_connection_is_an_error_and_no_descriptor_is_left) {
  run([] {
    EXPECT_EQ(error_of(Socket::connect(refusing())), std::errc::connection_refused);
    EXPECT_EQ(error_of(Socket::connect(Address())), Errc::invalid_argument);
    EXPECT_EQ(error_of(Socket::connect(Address::local("/nowhere/at/all").value())),
              std::errc::no_such_file_or_directory);
  });
}

TEST_P(Sockets, a_connection_that_nobody_answers_ends_by_its_deadline) {
  run([] {
    const Silent silent = Sockets::silent();
    const TimePoint begin = now();
    EXPECT_EQ(error_of(Socket::connect(silent.address, after(20ms))), Errc::timed_out);
    EXPECT_GE(now() - begin, 20ms);
  });
}

TEST_P(Sockets, connect_goes_on_to_the_next_address_after_a_refusal) {
  run([] {
    Listener listener = listen();
    const Address addresses[] = {refusing(), refusing(), address_of(listener)};
    Socket client = Socket::connect(addresses, after(30s)).value();
    EXPECT_EQ(client.peer_address().value(), address_of(listener));
  });
}

TEST_P(Sockets, connect_gives_an_address_that_says_nothing_its_share_of_the_time) {
  run([] {
    const Silent silent = Sockets::silent();
    Listener listener = listen();
    const Address addresses[] = {silent.address, address_of(listener)};
    const TimePoint begin = now();
    Socket client = Socket::connect(addresses, after(2s)).value();
    EXPECT_EQ(client.peer_address().value(), address_of(listener));
    EXPECT_GE(now() - begin, 1s);
    EXPECT_LT(now() - begin, 1900ms);
  });
}

TEST_P(Sockets, connect_to_none_that_answers_fails_as_the_last) {
  run([] {
    const Address addresses[] = {refusing(), refusing()};
    EXPECT_EQ(error_of(Socket::connect(addresses)), std::errc::connection_refused);
    EXPECT_EQ(error_of(Socket::connect(std::span<const Address>())), Errc::invalid_argument);
  });
}

TEST_P(Sockets, connect_stops_at_an_error_that_another_address_does_not_mend) {
  run([] {
    Listener listener = listen();
    const Address addresses[] = {Address::local("/nowhere/at/all").value(), address_of(listener)};
    EXPECT_EQ(error_of(Socket::connect(addresses)), std::errc::no_such_file_or_directory);
    EXPECT_EQ(error_of(listener.accept(now())), Errc::timed_out);
  });
}

TEST_P(Sockets, a_local_connection_waits_for_room_in_the_queue) {
  const std::string name = "@cede_socket_test_" + std::to_string(getpid());
  run([&] {
    ListenerOptions options;
    options.backlog = 0;
    Listener listener = Listener::bind(Address::local(name).value(), options).value();
    const Address at = address_of(listener);
    Socket first = Socket::connect(at).value();
    EXPECT_EQ(error_of(Socket::connect(at, after(10ms))), Errc::timed_out);
    Fiber<Result<Socket>> second = spawn([&] { return Socket::connect(at); });
    sleep_for(2ms);
    EXPECT_TRUE(listener.accept());
    EXPECT_TRUE(second.join());
  });
}

TEST_P(Sockets, cancelled_while_they_connect_leave_nothing) {
  run([] {
    const Silent silent = Sockets::silent();
    Fiber<void> connecting = spawn([&] { std::ignore = Socket::connect(silent.address); });
    sleep_for(1ms);
    connecting.cancel();
    EXPECT_EQ(connecting.AnyFiber::join(kForever).error(), Errc::cancelled);
  });
}

// Without descriptors the connections stay in the queue, and the listener stays readable.
TEST_P(Sockets, accept_without_descriptors_says_so_and_goes_on_when_there_are_some) {
  if (on_valgrind())
    GTEST_SKIP() << "valgrind has descriptors of its own, and this limit would be its";
  run([] {
    Listener listener = listen();
    std::vector<Socket> clients;
    for (int i = 0; i < 20; ++i)
      clients.push_back(Socket::connect(address_of(listener)).value());
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit none{3, limit.rlim_max}; // fewer than are open
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int refused = 0;
    std::vector<Socket> accepted;
    Fiber<void> acceptor = spawn([&] {
      while (accepted.size() < clients.size()) {
        Result<Socket> socket = listener.accept();
        if (socket)
          accepted.push_back(std::move(*socket));
        else if (socket.error() == std::errc::too_many_files_open)
          ++refused;
      }
    });
    const auto before = processor_time();
    sleep_for(300ms);
    EXPECT_LT(processor_time() - before, 60ms);
    EXPECT_GE(refused, 2);
    EXPECT_LE(refused, 20);
    setrlimit(RLIMIT_NOFILE, &limit);
    acceptor.join();
    EXPECT_EQ(accepted.size(), clients.size());
  });
}

TEST_P(Sockets, a_reset_in_mid_write_is_an_error_with_the_bytes_that_went) {
  run([] {
    Listener listener = listen();
    Socket client = Socket::connect(address_of(listener)).value();
    Socket server = listener.accept().value();
    Fiber<IoCount> writer = spawn([&] {
      const std::vector<std::byte> bytes(50'000'000);
      return client.write_all(std::span(bytes));
    });
    sleep_for(5ms);
    const linger reset{1, 0};
    setsockopt(server.native_handle(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    server.close().value();
    const IoCount count = writer.join();
    EXPECT_TRUE(count.error == std::errc::connection_reset ||
                count.error == std::errc::broken_pipe);
    EXPECT_GT(count.bytes, 0u);
    EXPECT_LT(count.bytes, 50'000'000u);
    std::array<std::byte, 1> byte{};
    const Result<std::size_t> read = client.read(byte, after(10s));
    EXPECT_TRUE(!read || *read == 0);
  });
}

TEST_P(Sockets, urgent_data_does_not_hide_what_follows_it) {
  run([] {
    Listener listener = listen();
    Socket client = Socket::connect(address_of(listener)).value();
    Socket server = listener.accept().value();
    EXPECT_EQ(error_of(server.readable(after(1ms))), Errc::timed_out);
    EXPECT_TRUE(write_text(client, "before"));
    EXPECT_EQ(send(client.native_handle(), "!", 1, MSG_OOB), 1);
    EXPECT_TRUE(write_text(client, "after"));
    sleep_for(5ms);
    EXPECT_EQ(read_text(server, after(10s)), "before");
    EXPECT_EQ(read_text(server, after(10s)), "after");
  });
}

TEST_P(Sockets, have_the_options_that_they_were_given) {
  run([] {
    const auto asked = [](int number, int level, int name) {
      int value = 0;
      socklen_t size = sizeof value;
      EXPECT_EQ(getsockopt(number, level, name, &value, &size), 0);
      return value != 0;
    };
    Listener listener = listen();
    EXPECT_TRUE(asked(listener.native_handle(), SOL_SOCKET, SO_REUSEADDR));
    EXPECT_EQ(error_of(Listener::bind(address_of(listener))), std::errc::address_in_use);
    Socket client = Socket::connect(address_of(listener)).value();
    Socket server = listener.accept().value();
    for (Socket* socket : {&client, &server}) {
      EXPECT_TRUE(asked(socket->native_handle(), IPPROTO_TCP, TCP_NODELAY));
      socket->set_no_delay(false).value();
      EXPECT_FALSE(asked(socket->native_handle(), IPPROTO_TCP, TCP_NODELAY));
      socket->set_keep_alive(true).value();
      EXPECT_TRUE(asked(socket->native_handle(), SOL_SOCKET, SO_KEEPALIVE));
    }
    ListenerOptions shared;
    shared.reuse_port = true;
    Listener one = Listener::bind(Address::loopback(0), shared).value();
    EXPECT_TRUE(Listener::bind(address_of(one), shared));
    Listener v6 = listen(Address::any_v6(0));
    EXPECT_TRUE(asked(v6.native_handle(), IPPROTO_IPV6, IPV6_V6ONLY));
  });
}

TEST_P(Sockets, that_are_closed_say_so) {
  run([] {
    Socket socket;
    EXPECT_EQ(error_of(socket.peer_address()), Errc::closed);
    EXPECT_EQ(error_of(socket.shutdown()), Errc::closed);
    EXPECT_EQ(error_of(socket.set_no_delay(true)), Errc::closed);
    EXPECT_EQ(error_of(Listener().accept()), Errc::closed);
    std::array<std::byte, 1> byte{};
    EXPECT_EQ(error_of(Datagram().receive_from(byte)), Errc::closed);
    EXPECT_EQ(error_of(Datagram().send_to(byte, Address::loopback(1))), Errc::closed);
  });
}

TEST_P(Sockets, datagrams_come_whole_with_who_sent_them) {
  for (const Address& address : {Address::loopback(0), Address::loopback_v6(0)})
    run([&] {
      Datagram one = Datagram::bind(address).value();
      Datagram other = Datagram::bind(address).value();
      std::array<std::byte, 8> bytes{};
      EXPECT_EQ(error_of(one.receive_from(bytes, after(1ms))), Errc::timed_out);
      for (const std::size_t size : {3u, 0u, 20u})
        other.send_to(std::vector<std::byte>(size), one.local_address().value()).value();
      for (const std::size_t size : {3u, 0u, 8u}) { // the last one's rest is lost
        const auto received = one.receive_from(bytes, after(10s)).value();
        EXPECT_EQ(received.bytes, size);
        EXPECT_EQ(received.from, other.local_address().value());
      }
    });
}

} // namespace
