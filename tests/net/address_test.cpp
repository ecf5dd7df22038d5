// SPDX-License-Identifier: MIT
// Rows: P-84
// Addresses, and the texts that they are written as.
#include <cede/address.h>

#include <gtest/gtest.h>
#include <random>
#include <string>
#include <unordered_set>

#ifndef _WIN32
#include <arpa/inet.h>
#endif

namespace cede {
namespace {

std::string round_trip(std::string_view text) {
  const Result<Address> address = Address::parse(text);
  return address ? address->to_string() : "refused";
}

TEST(Address, is_read_and_written) {
  for (const char* text :
       {"127.0.0.1:80", "0.0.0.0:0", "255.255.255.255:65535", "[::1]:80", "[::]:1",
        "[2001:db8::1:0:0:1]:443", "[1:2:3:4:5:6:7:8]:9", "[fe80::1%2]:80", "[1::]:5",
        "[1:0:3:4:5:6:7:8]:5", "unix:/run/it", "unix:@name", "unix:relative"})
    EXPECT_EQ(round_trip(text), text);
  EXPECT_EQ(round_trip(":80"), "0.0.0.0:80");
  EXPECT_EQ(round_trip("[0:0:0:0:0:0:0:1]:80"), "[::1]:80");
  EXPECT_EQ(round_trip("[::FFFF:1.2.3.4]:80"), "[::ffff:102:304]:80");
  EXPECT_EQ(round_trip("[1:2:3:4:5:6:1.2.3.4]:80"), "[1:2:3:4:5:6:102:304]:80");
  EXPECT_EQ(round_trip("[00a1::0]:80"), "[a1::]:80");
  EXPECT_EQ(round_trip("[::2:3:4:5:6:7:8]:5"), "[0:2:3:4:5:6:7:8]:5");
  EXPECT_EQ(Address().to_string(), "(none)");
}

TEST(Address, that_is_malformed_is_refused) {
  for (const char* text : {"",
                           ":",
                           "80",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "127.0.0.1:80x",
                           "127.0.0.1:-1",
                           "127.0.0.1:+1",
                           "127.0.0.1: 80",
                           "127.0.0.1:65536",
                           "127.0.0.1:080",
                           "127.0.0:80",
                           "127.0.0.1.1:80",
                           "127.0.0.256:80",
                           "127.0.0.01:80",
                           "127.0..1:80",
                           ".0.0.1:80",
                           "127.0.0.1.:80",
                           " 127.0.0.1:80",
                           "host:80",
                           "::1:80",
                           "[::1]",
                           "[::1]80",
                           "[::1:80",
                           "[]:80",
                           "[:]:80",
                           "[:::]:80",
                           "[1::2::3]:80",
                           "[1:2:3:4:5:6:7]:80",
                           "[1:2:3:4:5:6:7:8:9]:80",
                           "[1:2:3:4:5:6:7:8::]:80",
                           "[12345::]:80",
                           "[g::]:80",
                           "[1:]:80",
                           "[:1]:80",
                           "[::1:]:80",
                           "[::1.2.3]:80",
                           "[1.2.3.4::]:80",
                           "[1:2:3:4:5:6:7:1.2.3.4]:80",
                           "[fe80::1%]:80",
                           "[fe80::1%x]:80",
                           "[fe80::1%4294967296]:80",
                           "unix:"})
    EXPECT_EQ(round_trip(text), "refused") << text;
  EXPECT_FALSE(Address::parse(std::string_view("unix:a\0b", 8)));
  EXPECT_FALSE(Address::local(std::string(Address::kMostNameBytes + 1, 'x')));
  EXPECT_EQ(Address::local(std::string(Address::kMostNameBytes, 'x'))->name().size(),
            Address::kMostNameBytes);
}

TEST(Address, tells_what_it_is) {
  const Address address = Address::parse("[fe80::1%2]:80").value();
  EXPECT_EQ(address.family(), AddressFamily::ipv6);
  EXPECT_EQ(address.port(), 80);
  EXPECT_EQ(address.scope(), 2u);
  EXPECT_EQ(address.bytes()[0], 0xfe);
  EXPECT_EQ(address.with_port(81).to_string(), "[fe80::1%2]:81");
  EXPECT_TRUE(Address::loopback(1).is_loopback());
  EXPECT_TRUE(Address::parse("127.9.9.9:1")->is_loopback());
  EXPECT_TRUE(Address::loopback_v6(1).is_loopback());
  EXPECT_FALSE(Address::any(1).is_loopback());
  EXPECT_TRUE(Address::any(1).is_any());
  EXPECT_TRUE(Address::any_v6(1).is_any());
  EXPECT_FALSE(Address::loopback(1).is_any());
  EXPECT_EQ(Address::local("@x")->name(), "@x");
  EXPECT_EQ(Address::local("@x")->with_port(5), Address::local("@x").value());
}

TEST(Address, is_compared_and_found_by_all_that_it_is) {
  const Address one = Address::loopback(1);
  std::unordered_set<Address> all{one};
  for (const Address& other :
       {Address::loopback(2), Address::any(1), Address::loopback_v6(1), Address(),
        Address::local("x").value(), Address::ipv6({1}, 1, 1), Address::ipv6({1}, 1, 2)}) {
    EXPECT_NE(one, other);
    EXPECT_TRUE((one < other) != (other < one));
    EXPECT_TRUE(all.insert(other).second);
  }
  EXPECT_EQ(one, Address::parse("127.0.0.1:1").value());
  EXPECT_FALSE(all.insert(Address::parse("127.0.0.1:1").value()).second);
}

#ifndef _WIN32
// As the system writes them, and reads them.
TEST(Address, is_written_as_the_system_does) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::array<std::uint8_t, 16> bytes{};
    for (std::uint8_t& byte : bytes)
      byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : 0);
    bytes[0] |= 1; // not one that stands for an IPv4 address, which the system writes as such
    char text[INET6_ADDRSTRLEN];
    ASSERT_NE(inet_ntop(AF_INET6, bytes.data(), text, sizeof text), nullptr);
    const Address address = Address::ipv6(bytes, 7);
    ASSERT_EQ(address.to_string(), "[" + std::string(text) + "]:7");
    ASSERT_EQ(Address::parse(address.to_string()).value(), address);
  }
}

// Any text of the characters that addresses are made of.
TEST(Address, is_read_as_the_system_does) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (auto size = random() % 12; size > 0; --size)
      text += "0123:::..af"[random() % 11];
    std::uint8_t bytes[16];
    ASSERT_EQ(Address::parse("[" + text + "]:7").has_value(),
              inet_pton(AF_INET6, text.c_str(), bytes) == 1)
        << text;
    const bool is_ipv4 = inet_pton(AF_INET, text.c_str(), bytes) == 1;
    ASSERT_EQ(Address::parse(text + ":7").has_value(), is_ipv4 || text.empty()) << text;
  }
}
#endif

} // namespace
} // namespace cede
