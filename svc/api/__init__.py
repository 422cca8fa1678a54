"""Calls to one server, sent by one HTTP client (`svc.http.client`).

    api = connect("https://node.example", Sessions(home))
    repo = api.repo.find("alice", "project")
    made = api.send(refs.CREATE, RefCreate(type="tag", name="v1"), id=repo.id)
    for ref in api.items(refs.LIST, RefQuery(type="branch"), id=repo.id): ...

`send` and `items` call any endpoint that `localstore.core` declares. The modules here have the calls that
do more than that, such as uploads and sockets. Nothing here prints or asks the user. To let commands start
fast, httpx is imported by the first request, and each module here when it is first used."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from localstore.core.endpoint import Endpoint
    from localstore.core.model.base import Page
    from svc.api.history import HistoryCalls
    from svc.api.payload import PayloadCalls
    from svc.api.release import ReleaseCalls
    from svc.api.repo import RepoCalls
    from svc.api.sync import SyncCalls
    from svc.http.client import Http
    from svc.http.session import Sessions

T = TypeVar("T")


class Api:
    """The calls to one server. `signed_in` says whether requests are sent with a session."""

    def __init__(self, http: Http) -> None:
        self.http = http

    @property
    def origin(self) -> str:
        return self.http.origin

    @property
    def signed_in(self) -> bool:
        return self.http.credential is not None

    def send(self, endpoint: Endpoint[T], body: Any = None, query: Any = None, **path: str) -> T:
        """Send a request to an endpoint. `path` has the parameters of the endpoint's path. `body` and `query`
        are structs of the types that the endpoint declares; a body of bytes is sent unchanged. Returns the
        decoded answer.

        Raises the error that the server answers, ServerUnreachable, or ServerMisbehaved for an invalid
        answer.
        """
        return self.http.send(endpoint, body, query, **path)

    def items(
        self, endpoint: Endpoint[Page[T]], query: Any = None, *, limit: int | None = None, **path: str
    ) -> Iterator[T]:
        """Yields the items of a paged endpoint, at most `limit`. Each page is requested when the iteration
        reaches it."""
        return self.http.items(endpoint, query, limit=limit, **path)

    @cached_property
    def history(self) -> HistoryCalls:
        from svc.api.history import HistoryCalls

        return HistoryCalls(self.http)

    @cached_property
    def payload(self) -> PayloadCalls:
        from svc.api.payload import PayloadCalls

        return PayloadCalls(self.http)

    @cached_property
    def release(self) -> ReleaseCalls:
        from svc.api.release import ReleaseCalls

        return ReleaseCalls(self.http)

    @cached_property
    def repo(self) -> RepoCalls:
        from svc.api.repo import RepoCalls

        return RepoCalls(self.http)

    @cached_property
    def sync(self) -> SyncCalls:
        from svc.api.sync import SyncCalls

        return SyncCalls(self.http)

    def close(self) -> None:
        self.http.close()


def connect(origin: str, sessions: Sessions, *, anonymous: bool = False) -> Api:
    """Return the API of the server `origin`. Requests use this machine's session for the server, or no
    session if `anonymous` is True.

    Raises Unauthorized if the session has expired."""
    from svc.http.client import Http

    return Api(Http(origin, None if anonymous else sessions.credential(origin)))
