"""Decides who may see the app: the browser that has sent the one-time token, and only from the app's own
page.

The token is exchanged for a cookie. The cookie is only sent to an unguessable path, so that other servers on
this machine do not receive it. A request that comes from another site is refused. Three headers reveal such a
request: `Origin` for scripts and sockets, `Sec-Fetch-Site`, and `Host` if another site has made its name
point to this machine."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from aiohttp import web

from tui.web.peer import other_user

COOKIE = "svc_app"
_OWN_SITES = ("same-origin", "none")  # none: typed, or opened by a program
AGAIN = "End svc tui --web with ctrl+c and start it again for a new address."


class Guard:
    """The secrets of the server at `port`: the one-time token, the cookie, and the unguessable path."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)
        self.path = f"/{secrets.token_urlsafe(16)}/"

    @property
    def url(self) -> str:
        """The URL that opens the app. It contains the token."""
        return f"http://127.0.0.1:{self._port}/?token={self._token}"

    def exchange(self, request: web.Request) -> Callable[[web.Response], None] | None:
        """If the request has the valid token, make the token invalid, and return a function that adds the
        cookie to the response. Otherwise return None."""
        brought = request.query.getall("token", [])
        if request.method != "GET" or len(brought) != 1 or not _same(self._token, brought[0]):
            return None
        self._token = ""

        def give(response: web.Response) -> None:
            response.set_cookie(COOKIE, self._cookie, path=self.path, httponly=True, samesite="Strict")

        return give

    def refusal(self, request: web.Request) -> str:
        """Returns the reason why a request is refused. Returns "" if it is allowed."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        if len(hosts) != 1 or hosts[0] not in (f"127.0.0.1:{self._port}", f"localhost:{self._port}"):
            return f"This is the app of svc; its address begins with http://127.0.0.1:{self._port}/."
        if any(origin != f"http://{hosts[0]}" for origin in origins):
            return "Pages of other sites may not use the app of svc."
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        if peer is None or other_user(peer[1], self._port):
            return "The app of svc answers the user who started it."
        if request.path == "/":
            return ""  # the token decides
        if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES:
            return "Pages of other sites may not use the app of svc."
        if not _same(self._cookie, request.cookies.get(COOKIE, "")) or not request.path.startswith(self.path):
            return f"The address with the token, which counts once, opens the app of svc. {AGAIN}"
        if request.path == f"{self.path}ws" and not origins:
            return "The app of svc answers its own page."
        return ""


def _same(secret: str, brought: str) -> bool:
    return secret != "" and hmac.compare_digest(secret.encode(), brought.encode("utf-8", "replace"))
