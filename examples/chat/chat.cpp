// SPDX-License-Identifier: MIT
// A chat: each line goes to everybody else. Two listeners in one runtime, a fiber for each
// connection, and one more that writes to it, so that who reads slowly keeps nobody waiting.
//
//   chat [ADDRESS...]       default: 127.0.0.1:7000 and [::1]:7000; talk to it by: nc 127.0.0.1
//   7000
//
// It prints where it listens, and ends on SIGINT.
#include <cede/cede.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostLines = 100; // that wait for who reads slowly; he is left behind then
constexpr std::size_t kLongestLine = 1000;
constexpr auto kPatience = 5s; // for a reader who takes nothing at all

class Room {
public:
  // A member, until it is destroyed.
  class Member {
  public:
    Member(Room& room, std::string name) : room_(room), name_(std::move(name)), lines_(kMostLines) {
      room_.members_.insert(this);
      room_.tell("* " + name_ + " has come", nullptr);
    }
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member() {
      room_.members_.erase(this);
      room_.tell("* " + name_ + " has gone", nullptr);
    }

    void say(const std::string& line) { room_.tell(name_ + ": " + line, this); }
    cede::Channel<std::string>& lines() noexcept { return lines_; }

  private:
    friend class Room;
    Room& room_;
    std::string name_;
    cede::Channel<std::string> lines_;
  };

private:
  void tell(const std::string& line, const Member* except) {
    for (Member* member : members_)
      if (member != except && !member->lines_.try_send(line + "\n"))
        member->lines_.close(); // it is full: his connection ends
  }

  std::set<Member*> members_;
};

void write_lines(cede::Socket& socket, cede::Channel<std::string>& lines) {
  for (const std::string& line : lines)
    if (!socket.write_all(line, cede::after(kPatience)))
      break;
  std::ignore = socket.shutdown(cede::Socket::Ending::both); // whoever reads comes to the end
}

void serve(Room& room, cede::Socket socket) {
  const cede::Result<cede::Address> peer = socket.peer_address();
  Room::Member member(room, peer ? peer->to_string() : "somebody");
  cede::Group writing;
  writing.spawn([&] { write_lines(socket, member.lines()); });
  cede::LineReader lines(socket, kLongestLine);
  while (const cede::Result<std::string_view> line = lines.read_line())
    member.say(std::string(*line));
  member.lines().close(); // what is queued is still written
  writing.join();
}

void accept_all(Room& room, cede::Listener& listener, cede::Group& connections) {
  for (;;) {
    cede::Result<cede::Socket> socket = listener.accept();
    if (!socket) {
      std::fprintf(stderr, "accept: %s\n", socket.error().message().c_str());
      if (socket.error() == cede::Errc::closed)
        return;
      continue;
    }
    connections.spawn(
        [&room, peer = std::move(*socket)]() mutable { serve(room, std::move(peer)); });
  }
}

} // namespace

int main(int count, char** words) {
  std::vector<std::string> places(words + 1, words + count);
  if (places.empty())
    places = {"127.0.0.1:7000", "[::1]:7000"};
  return cede::run([&] {
    cede::OsSignals signals = cede::OsSignals::watch({SIGINT, SIGTERM}).value();
    Room room;
    std::vector<std::unique_ptr<cede::Listener>> listeners;
    for (const std::string& place : places) {
      const cede::Result<cede::Address> address = cede::Address::parse(place);
      cede::Result<cede::Listener> listener =
          address ? cede::Listener::bind(*address) : address.error();
      if (!listener) {
        std::fprintf(stderr, "%s: %s\n", place.c_str(), listener.error().message().c_str());
        return 1;
      }
      std::printf("listening on %s\n", listener->local_address().value().to_string().c_str());
      listeners.push_back(std::make_unique<cede::Listener>(std::move(*listener)));
    }
    std::fflush(stdout);
    cede::Group connections; // ends before the room and the listeners do
    for (const auto& listener : listeners)
      connections.spawn([&, &it = *listener] { accept_all(room, it, connections); });
    std::ignore = signals.next();
    connections.cancel();
    connections.join();
    std::printf("ended\n");
    return 0;
  });
}
