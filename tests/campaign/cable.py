"""A cable between clients and the relay that a test cuts and mends, and that counts what goes up."""

from __future__ import annotations

import re
import socket
import threading
from contextlib import suppress

REQUEST = re.compile(rb"(?:GET|POST|PATCH|PUT|DELETE) (/\S*) HTTP/1\.1\r\n")


class Cable:
    """`asked`: the path of each request, in order. `refuse_sockets`: as something between that knows no
    WebSockets. `silent`: take what is said and answer nothing."""

    def __init__(self) -> None:
        self.upstream = 0
        self.asked: list[str] = []
        self.whole, self.refuse_sockets, self.silent = True, False, False
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def sockets(self) -> int:
        """How many WebSockets were asked for."""
        return sum(path.endswith("/sync/ws") for path in self.asked)

    def cut(self) -> None:
        """End every connection and take no new one, until `mend`."""
        self.whole = False
        for one in list(self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.whole = True

    def unplug(self) -> None:
        """Refuse connections from now on."""
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if not self.whole:
                return
            if self.silent:
                self._open.add(client)
                while client.recv(65536):
                    pass
                return
            with socket.create_connection(("127.0.0.1", self.upstream), timeout=5) as relay:
                relay.settimeout(None)
                self._open |= {client, relay}
                back = threading.Thread(target=self._pump, args=(relay, client, False), daemon=True)
                back.start()
                self._pump(client, relay, True)
                back.join()
                self._open -= {client, relay}

    def _pump(self, source: socket.socket, target: socket.socket, up: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                paths = [found.decode() for found in REQUEST.findall(data)] if up else []
                self.asked += paths
                if self.refuse_sockets and any(path.endswith("/sync/ws") for path in paths):
                    source.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                    continue
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
