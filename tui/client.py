"""The app's access to a server. Its methods block, so call them on threads. Answers are cached.

cached = client.read_cached(reads.repos("alice"))
repos, at = client.fetch(reads.repos("alice"))
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from localstore.core.errors import ServerUnreachable, SvcError, Unauthorized
from localstore.known import Store
from svc.api import Api
from tui.reads import Read
from tui.wording import in_app, reason_unreached

if TYPE_CHECKING:
    from svc.http.credential import Credential

T = TypeVar("T")
NO_SERVER = "none"  # the state of the connection of an app that knows no server yet


class Client:
    """Makes requests to one server as one account. `open_api`: makes the API client, at the first request.
    `credential`: returns the session of the account on this machine, None if there is none. It is called
    after the server has refused a request, because the user may have signed in again."""

    def __init__(
        self,
        origin: str,
        account: str,
        open_api: Callable[[], Api],
        store: Store,
        credential: Callable[[], Credential | None] = lambda: None,
    ) -> None:
        self.origin, self.account, self.store = origin, account, store
        self.space = f"{account}@{origin}"
        self._open_api, self._credential = open_api, credential
        self._api: Api | None = None

    @property
    def api(self) -> Api:
        if self._api is None:
            self._api = self._open_api()
        return self._api

    def read_cached(self, read: Read[T]) -> tuple[T, float] | None:
        """Returns the cached answer to a request and when it was read, in seconds since 1970. Returns None if
        no answer is cached."""
        return self.store.get(self.space, read.key, read.shape)

    def fetch(self, read: Read[T]) -> tuple[T, float]:
        """Make a request and cache its answer. Returns the answer and when it came, in seconds since 1970.
        Raises the errors of the request."""
        used = self.api.http.credential
        try:
            value = read.call(self.api)
        except Unauthorized:
            if not self.renew(used):
                raise
            value = read.call(self.api)
        self.store.put(self.space, read.key, value)
        return value, time.time()

    def renew(self, used: Credential | None) -> bool:
        """Sign requests with the account's present session. Called after the server has refused the
        credential `used`. Returns False if the present session is the refused one, or if there is none."""
        fresh = self._credential()
        if fresh is None or used is None or fresh.token == used.token:
            return False
        self.api.http.credential = fresh
        return True

    def close(self) -> None:
        if self._api is not None:
            self._api.close()
        self.store.close()


def state_after(error: BaseException | None) -> str:
    """Returns the state of the connection after a request: online, offline or sign_in. `error`: the error of
    the request, None if it succeeded."""
    if isinstance(error, ServerUnreachable):
        return "offline"
    if isinstance(error, Unauthorized):
        return "sign_in"
    return "online"


def sentence(error: BaseException) -> str:
    """Returns the sentence about an error that the screen shows."""
    if isinstance(error, ServerUnreachable):
        return in_app(reason_unreached(str(error.detail or error.title)))
    if isinstance(error, SvcError):
        return in_app(str(error.detail or error.title))
    return f"something went wrong: {type(error).__name__}"
