"""Remembers up to when the user has read the talk of an issue or a proposal. What is new then stands out."""

from __future__ import annotations

from collections.abc import Callable

from tui.client import Client


class LastRead:
    """Up to when the talk of an issue or a proposal was read. It is stored on this machine. `until`: the time
    of the newest that was shown when the screen was opened before, "" if it never was."""

    def __init__(self, client: Client, repo_id: str, number: int) -> None:
        self._client, self._key = client, f"repos/{repo_id}/talks/{number}/read"
        stored = client.store.get(client.space, self._key, str)
        self.until = self._newest = stored.value if stored is not None else ""

    def note(self, newest: str, later: Callable[[Callable[[], None]], object]) -> None:
        """Store that everything up to the time `newest` was shown. `later`: runs a function on a thread."""
        if newest > self._newest:
            self._newest = newest
            later(lambda: self._client.store.put(self._client.space, self._key, newest))
