"""Takes access away from 200 sockets while somebody types, and checks that they receive nothing afterwards.

    python -m scripts.live.taken_away [--sockets 200] [--rounds 5]

A collaborator is removed by a request to the relay while the owner types without a pause. Each of the
collaborator's sockets must be refused and receive nothing after that. No socket may receive an update that
was sent after the removal was answered.
"""

from __future__ import annotations

import argparse
import re
import secrets
import selectors
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from localstore.core.model import access
from localstore.core.model.access import InviteCreate
from scripts.bench.ingest import signed_in
from scripts.bench.live import Listener, Typist, credentials, devices
from scripts.bench.relay_cost import MeasuredRelay
from svc.api import Api
from svc.http.client import Http

_FRAME = re.compile(rb'"seq":(\d+),"replica"')
_REFUSED = b'"refused"'
REST = 3.0  # seconds that are listened after the last key


class Reading(threading.Thread):
    """A thread that reads what arrives at the collaborator's sockets. `said`: socket → the bytes that it
    received."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        super().__init__()
        self.said = {one.line: bytearray() for one in listeners}
        self.ended = threading.Event()

    def run(self) -> None:
        with selectors.DefaultSelector() as chooser:
            for line in self.said:
                chooser.register(line, selectors.EVENT_READ)
            while not self.ended.is_set():
                for key, _ in chooser.select(0.1):
                    data = key.fileobj.recv(65536)  # type: ignore[union-attr]
                    if data:
                        self.said[key.fileobj] += data  # type: ignore[index]
                    else:
                        chooser.unregister(key.fileobj)


def round_of(
    base: Path, relay: MeasuredRelay, api: Api, repo_id: str, typist: Typist, sockets: int
) -> list[str]:
    """Add a collaborator with `sockets` sockets, and remove the collaborator while the owner types. Returns
    the faults."""
    handle = f"guest{secrets.token_hex(3)}"
    home = base / handle
    guest = Api(Http(relay.origin, next(credentials(home, relay, 1, handle))))
    api.send(access.INVITE, InviteCreate(handle=handle, role="write"), id=repo_id)
    mine = guest.send(access.MY_INVITES).items[0]
    guest.send(access.ACCEPT_INVITE, invite=mine.id)
    with devices(home, relay, repo_id, sockets, False, handle) as listeners:
        reading = Reading(listeners)
        reading.start()
        answered = threading.Event()

        def remove() -> None:
            time.sleep(0.3)
            api.send(access.REMOVE, id=repo_id, handle=handle)
            answered.set()

        removing = threading.Thread(target=remove)
        removing.start()
        before = typist.key()
        while not answered.is_set():
            before = typist.key()
        for _ in range(10):
            typist.key()
        time.sleep(REST)
        reading.ended.set()
        reading.join()
        removing.join()
    wrong = []
    heard = 0
    for said in reading.said.values():
        numbers = [int(found[1]) for found in _FRAME.finditer(said)]
        heard += len(numbers)
        at = said.find(_REFUSED)
        if at < 0:
            wrong.append("a socket was not refused")
        elif _FRAME.search(said, at):
            wrong.append("a frame came after the refusal")
        if numbers and max(numbers) > before:
            wrong.append(f"update {max(numbers)} was sent after the removal was answered ({before})")
    print(f"{sockets} sockets heard {heard} frames; wrong: {len(wrong)}", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sockets", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-taken-") as folder:
        base = Path(folder)
        with MeasuredRelay(base / "relay") as relay:
            api, repo_id = signed_in(base, relay.origin)
            credential = api.http.credential
            assert credential is not None  # it just signed in
            typist = Typist(relay, api, repo_id, credential)
            wrong = [
                one
                for _ in range(options.rounds)
                for one in round_of(base, relay, api, repo_id, typist, options.sockets)
            ]
    print("\n".join(sorted(set(wrong))) or "nothing came after access was taken away")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
