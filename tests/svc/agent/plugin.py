"""An editor plugin as the guide describes one: a socket, JSON lines, and a buffer."""

from __future__ import annotations

import json
import queue
import socket
import threading
from pathlib import Path
from typing import Any

from localstore.agent.place import socket_path
from tests.patience import until


def spliced(text: str, splices: list[list[Any]]) -> str:
    """What an editor that counts characters makes of splices."""
    for at, deleted, word in splices:
        text = text[:at] + word + text[at + deleted :]
    return text


class Plugin:
    """`text`: the buffer. `made`: number of its last change; `kept`: of the last one that the agent has
    kept. `said`: all events. It takes them in when `hear` is called, and not before."""

    def __init__(self, home: Path, folder: Path, path: str, unit: str = "characters") -> None:
        self.text: str | None = None
        self.made = self.seen = self.kept = 0
        self.queued = True
        self.said: list[dict[str, Any]] = []
        self._heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._socket = socket.socket(socket.AF_UNIX)
        with socket_path(home) as place:
            self._socket.connect(place)
        self.send(do="edit", folder=str(folder), path=path, unit=unit)
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, **words: Any) -> None:
        self._socket.sendall(json.dumps(words).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()

    def _listen(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    self._heard.put(json.loads(line))
        except OSError:
            pass
        self._heard.put({"event": "gone"})

    def hear(self) -> None:
        """Take in what was heard so far."""
        while not self._heard.empty():
            event = self._heard.get()
            self.said.append(event)
            match event.get("event"):
                case "text":
                    self.text = event["text"]
                case "change" if event.get("n", 0) == self.made:
                    self.text = spliced(self.text or "", event["splices"])
                    self.seen = event["change"]
                    self.send(seen=self.seen)
                case "kept":
                    self.kept, self.queued = event.get("n", 0), event.get("queued", False)

    def opened(self) -> Plugin:
        until(lambda: (self.hear(), self.text is not None)[1], "the text is there")
        return self

    def type(self, before: str, word: str) -> None:
        """Type a word before the first occurrence of `before`, letter by letter."""
        assert self.text is not None
        at = self.text.index(before)
        for letter in word:
            self.splice(at, 0, letter)
            at += 1

    def splice(self, at: int, deleted: int, word: str) -> None:
        assert self.text is not None
        self.made += 1
        self.text = spliced(self.text, [[at, deleted, word]])
        line = self.text[:at].count("\n") + 1
        self.send(n=self.made, seen=self.seen, splices=[[at, deleted, word]], line=line, col=1)

    def settled(self) -> bool:
        self.hear()
        return self.kept == self.made and not self.queued

    def why(self) -> str:
        """Why the text cannot be edited, once it was said."""

        def ended() -> list[str]:
            self.hear()
            said = self.said
            return [
                one.get("detail") or one["error"]
                for one in said
                if one.get("event") == "ended" or "error" in one
            ]

        return until(ended, "it says why")[0]
