"""A road between clients and the relay that loses, cuts, delays and repeats what travels on it.

Runs as a process of its own: `python -m tests.campaign.proxy CONTROL` prints its port. Every connection reads
the control file, so a test writes there what the next ones shall meet.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

CHUNK = 65536
KEPT = 8  # earlier conversations that may be repeated


class Weather(msgspec.Struct, forbid_unknown_fields=True):
    """What the road does. `serial` starts the byte counters anew; `cut_up` and `cut_down` are bytes after
    which the connection ends, once, by reset or by an ordinary end; `closed` refuses everybody; `repeat`
    sends an earlier conversation once more before the next one; `delay` is seconds before every piece."""

    upstream: int = 0
    serial: int = 0
    closed: bool = False
    cut_up: int | None = None
    cut_down: int | None = None
    reset: bool = False
    delay: float = 0.0
    repeat: bool = False


class Proxy:
    def __init__(self, control: Path) -> None:
        self.control = control
        self.serial = -1
        self.count = {"up": 0, "down": 0}
        self.cut_done = False
        self.lock = threading.Lock()
        self.earlier: list[bytes] = []
        self.random = random.Random(1)

    def weather(self) -> Weather:
        found = msgspec.json.decode(self.control.read_bytes(), type=Weather)
        with self.lock:
            if found.serial != self.serial:
                self.serial, self.cut_done = found.serial, False
                self.count = {"up": 0, "down": 0}
        return found

    def serve(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=self.handle, args=(client,), daemon=True).start()

    def handle(self, client: socket.socket) -> None:
        weather = self.weather()
        if weather.closed:
            end(client, reset=True)
            return
        if weather.repeat and self.earlier:
            self.say_again(weather.upstream)
        try:
            server = socket.create_connection(("127.0.0.1", weather.upstream), timeout=5)
        except OSError:
            end(client, reset=True)
            return
        server.settimeout(None)
        for way in (client, server):
            way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        said = bytearray()
        back = threading.Thread(
            target=self.pump, args=(server, client, "down", weather, bytearray()), daemon=True
        )
        back.start()
        self.pump(client, server, "up", weather, said)
        back.join()
        client.close()
        server.close()
        with self.lock:
            self.earlier = [*self.earlier[-KEPT + 1 :], bytes(said)]

    def pump(
        self, source: socket.socket, sink: socket.socket, way: str, weather: Weather, said: bytearray
    ) -> None:
        limit = weather.cut_up if way == "up" else weather.cut_down
        try:
            while piece := source.recv(CHUNK):
                if weather.delay:
                    time.sleep(weather.delay)
                whole = len(piece)
                with self.lock:
                    if limit is not None and not self.cut_done and self.count[way] + whole > limit:
                        piece, self.cut_done = piece[: limit - self.count[way]], True
                    self.count[way] += whole
                if len(said) < 1 << 20:
                    said += piece
                sink.sendall(piece)
                if len(piece) < whole:
                    end(source, weather.reset)
                    end(sink, weather.reset)
                    return
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            end(source, reset=False)
            end(sink, reset=False)

    def say_again(self, upstream: int) -> None:
        """A late copy of an earlier conversation; nobody hears the answers."""
        with self.lock:
            said = self.random.choice(self.earlier)
        try:
            with socket.create_connection(("127.0.0.1", upstream), timeout=2) as again:
                again.sendall(said)
                again.settimeout(0.3)
                while again.recv(CHUNK):
                    pass
        except OSError:
            return


def end(connection: socket.socket, reset: bool) -> None:
    try:
        if reset:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RD)  # who still reads from it in another thread holds it open
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        else:
            connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    Proxy(Path(sys.argv[1])).serve(listener)


if __name__ == "__main__":
    main()
