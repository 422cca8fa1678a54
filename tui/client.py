"""The app's access to a server: calls run on threads, and their answers are cached.

known = client.known(reads.repos("alice"))
repos, at = client.fetch(reads.repos("alice"))
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from localstore.core.errors import ServerUnreachable, SvcError, Unauthorized
from localstore.known import Store
from svc.api import Api
from tui.reads import Read

T = TypeVar("T")


class Client:
    """Calls to one server as one account. `open_api` makes the API at the first call."""

    def __init__(self, origin: str, account: str, open_api: Callable[[], Api], store: Store) -> None:
        self.origin, self.account, self.store = origin, account, store
        self.space = f"{account}@{origin}"
        self._open_api = open_api
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        if self._api is None:
            self._api = self._open_api()
        return self._api

    def known(self, read: Read[T]) -> tuple[T, float] | None:
        """(the cached value, the time at which it was read in seconds since 1970); None without one."""
        return self.store.get(self.space, read.key, read.shape)

    def fetch(self, read: Read[T]) -> tuple[T, float]:
        """(the server's answer, the time at which it came in seconds since 1970); the answer is cached.
        Raises the errors of the call."""
        value = read.call(self.api)
        self.store.put(self.space, read.key, value)
        return value, time.time()

    def close(self) -> None:
        if self._api is not None:
            self._api.close()
        self.store.close()


def state_after(error: BaseException | None) -> str:
    """The state of the connection after a call: online, offline or sign_in."""
    if isinstance(error, ServerUnreachable):
        return "offline"
    if isinstance(error, Unauthorized):
        return "sign_in"
    return "online"


def sentence(error: BaseException) -> str:
    """The sentence about an error for the status line."""
    if isinstance(error, SvcError):
        return str(error.detail or error.title)
    return f"something went wrong: {type(error).__name__}"
