# SPDX-License-Identifier: MIT
# check.py PROGRAM...: starts the chat, talks to it, and stops it.
import re
import signal
import socket
import subprocess
import sys

PATIENCE = 60  # seconds


class Client:
    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), PATIENCE)
        self.ahead = b""

    def send(self, text):
        self.socket.sendall(text)

    def line(self):
        """The next line; nothing at the end."""
        while b"\n" not in self.ahead:
            try:
                more = self.socket.recv(4096)
            except ConnectionResetError:
                more = b""
            if not more:
                return ""
            self.ahead += more
        line, self.ahead = self.ahead.split(b"\n", 1)
        return line.decode()

    def expect(self, pattern):
        line = self.line()
        assert re.fullmatch(pattern, line), f"{line!r} is not {pattern!r}"


chat = subprocess.Popen(sys.argv[1:] + ["127.0.0.1:0", "[::1]:0"], stdout=subprocess.PIPE, text=True)
try:
    places = [chat.stdout.readline() for _ in range(2)]
    ports = [int(re.search(r":(\d+)$", place).group(1)) for place in places]
    one = Client("127.0.0.1", ports[0])
    one.expect(r"\* 127\.0\.0\.1:\d+ has come")
    other = Client("::1", ports[1])
    one.expect(r"\* \[::1\]:\d+ has come")
    other.expect(r"\* \[::1\]:\d+ has come")

    # To everybody else, over both listeners, in pieces and several at once.
    one.send(b"hel")
    one.send(b"lo\r\nagain\n")
    other.expect(r"127\.0\.0\.1:\d+: hello")
    other.expect(r"127\.0\.0\.1:\d+: again")
    other.send(b"hi\n")
    one.expect(r"\[::1\]:\d+: hi")

    # A line that is too long ends its connection, and no other.
    third = Client("127.0.0.1", ports[0])
    for client in (one, other, third):
        client.expect(r"\* 127\.0\.0\.1:\d+ has come")
    third.send(b"x" * 100_000)
    one.expect(r"\* 127\.0\.0\.1:\d+ has gone")
    other.expect(r"\* 127\.0\.0\.1:\d+ has gone")

    # So does reading nothing; who talks meanwhile is not kept waiting.
    slow = Client("127.0.0.1", ports[0])
    for client in (one, other, slow):
        client.expect(r"\* 127\.0\.0\.1:\d+ has come")
    count = 0
    while True:
        one.send(b"y" * 900 + b"\n")
        count += 1
        line = other.line()
        if line.endswith("has gone"):
            break
        assert line.endswith("y" * 900), line
        assert count < 1_000_000
    one.expect(r"\* 127\.0\.0\.1:\d+ has gone")

    chat.send_signal(signal.SIGINT)
    for client in (one, other):
        while client.line():
            pass
    assert chat.stdout.read() == "ended\n"
    assert chat.wait(PATIENCE) == 0
finally:
    chat.kill()
