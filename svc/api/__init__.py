"""Typed calls to one server, a module for each noun, over one HTTP conversation (`svc.http.client`).

    api = connect("https://node.example", Sessions(home))
    repo = api.repo.find("alice", "project")
    for ref in api.ref.list(repo.id): ...

Nothing here prints or asks. httpx is imported by the first request, a noun's module by its first use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from svc.api.auth import AuthCalls
    from svc.api.device import DeviceCalls
    from svc.api.history import HistoryCalls
    from svc.api.live import LiveCalls
    from svc.api.node import NodeCalls
    from svc.api.payload import PayloadCalls
    from svc.api.ref import RefCalls
    from svc.api.repo import RepoCalls
    from svc.api.seal import SealCalls
    from svc.http.client import Http
    from svc.http.session import Sessions


class Api:
    """The calls of one server. `signed_in` says whether requests carry a session."""

    def __init__(self, http: Http) -> None:
        self.http = http

    @property
    def origin(self) -> str:
        return self.http.origin

    @property
    def signed_in(self) -> bool:
        return self.http.credential is not None

    @cached_property
    def auth(self) -> AuthCalls:
        from svc.api.auth import AuthCalls

        return AuthCalls(self.http)

    @cached_property
    def device(self) -> DeviceCalls:
        from svc.api.device import DeviceCalls

        return DeviceCalls(self.http)

    @cached_property
    def history(self) -> HistoryCalls:
        from svc.api.history import HistoryCalls

        return HistoryCalls(self.http)

    @cached_property
    def live(self) -> LiveCalls:
        from svc.api.live import LiveCalls

        return LiveCalls(self.http)

    @cached_property
    def node(self) -> NodeCalls:
        from svc.api.node import NodeCalls

        return NodeCalls(self.http)

    @cached_property
    def payload(self) -> PayloadCalls:
        from svc.api.payload import PayloadCalls

        return PayloadCalls(self.http)

    @cached_property
    def ref(self) -> RefCalls:
        from svc.api.ref import RefCalls

        return RefCalls(self.http)

    @cached_property
    def repo(self) -> RepoCalls:
        from svc.api.repo import RepoCalls

        return RepoCalls(self.http)

    @cached_property
    def seal(self) -> SealCalls:
        from svc.api.seal import SealCalls

        return SealCalls(self.http)

    def close(self) -> None:
        self.http.close()


def connect(origin: str, sessions: Sessions, *, anonymous: bool = False) -> Api:
    """The API of `origin` with the session this machine has for it. `anonymous` sends none.

    Raises Unauthorized when that session has ended.
    """
    from svc.http.client import Http

    return Api(Http(origin, None if anonymous else sessions.credential(origin)))
