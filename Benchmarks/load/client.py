"""A client of the API: HTTP/1.1 over one connection, in little code, as thousands of them run."""
import asyncio
import json
import socket


class Closed(Exception):
    """The connection has ended before the answer had; `had_bytes`: within it."""

    def __init__(self, had_bytes=False):
        super().__init__("the connection was closed")
        self.had_bytes = had_bytes


class Answer:
    __slots__ = ("status", "fields", "body")

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


class Client(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self):
        self.transport = None
        self.buffer = bytearray()
        self.waiter = None
        self.is_open = False

    @classmethod
    async def connect(cls, port, source="127.0.0.1", seconds=60):
        loop = asyncio.get_running_loop()
        made = socket.socket()
        try:
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # The kernel may choose the same port for two sources.
            made.setsockopt(socket.IPPROTO_IP, getattr(socket, "IP_BIND_ADDRESS_NO_PORT", 24), 1)
            made.bind((source, 0))
            await asyncio.wait_for(loop.sock_connect(made, ("127.0.0.1", port)), seconds)
        except BaseException:
            made.close()
            raise
        _, client = await loop.create_connection(cls, sock=made)
        return client

    def connection_made(self, transport):
        self.transport, self.is_open = transport, True

    def connection_lost(self, _):
        self.is_open = False
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(Closed(bool(self.buffer)))

    def data_received(self, data):
        self.buffer += data
        if self.waiter is None or self.waiter.done():
            return
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        lines = bytes(self.buffer[:end]).decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        size = int(fields.get("content-length", 0))
        if len(self.buffer) < end + 4 + size:
            return
        body = bytes(self.buffer[end + 4:end + 4 + size])
        del self.buffer[:end + 4 + size]
        self.waiter.set_result(Answer(int(lines[0].split(" ", 2)[1]), fields, body))

    async def request(self, method, path, body=b"", fields="", seconds=120):
        """The answer. `fields` are whole lines.

        Throws `Closed`, or `TimeoutError` if there is none within `seconds`.
        """
        if not self.is_open:
            raise Closed
        self.waiter = asyncio.get_running_loop().create_future()
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        self.transport.write(
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}{fields}\r\n".encode() + body)
        timeout = asyncio.get_running_loop().call_later(seconds, self.give_up)
        try:
            return await self.waiter
        finally:
            timeout.cancel()
            self.waiter = None

    def give_up(self):
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_exception(TimeoutError())

    def close(self):
        if self.transport is not None:
            self.transport.abort()


def source(index, per_address=400):
    """Loopback has many addresses: the server takes 500 connections from each."""
    return f"127.0.0.{2 + index // per_address}"


JSON = "Content-Type: application/json\r\n"
