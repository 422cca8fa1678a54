"""The cookies of a browser session, and checks that a request comes from the relay's own pages.

The names are `__Host-session` and `__Secure-refresh` if the node is reached by TLS, and `tr_session` and
`tr_refresh` on a development node with plain HTTP.
"""

from __future__ import annotations

from sanic.request import Request

from localstore.core.errors import Forbidden, Unauthorized
from localstore.core.model import limits
from localstore.core.model.auth import REFRESH
from relay.config import Config

REFRESH_PATH = REFRESH.path


def session_name(config: Config) -> str:
    return "__Host-session" if config.secure else "tr_session"


def refresh_name(config: Config) -> str:
    return "__Secure-refresh" if config.secure else "tr_refresh"


def flow_name(config: Config) -> str:
    """The name of the cookie for an unfinished sign-in by an identity provider."""
    return "__Host-login" if config.secure else "tr_login"


def read_cookie(request: Request, name: str) -> str | None:
    """The value of the cookie `name`; None if the request has no such cookie, or an empty one. The name is
    compared with the bytes of the request's head. A comparison of decoded text would ignore Unicode spaces
    around the name. So another site of this domain could set a cookie named U+2003 `__Host-session`, and it
    would be accepted. Raises Unauthorized if the cookie comes twice, because only one of the two can be this
    node's."""
    name_bytes, values = name.encode("ascii"), []
    for line in request.head.split(b"\r\n")[1:]:
        field, _, content = line.partition(b":")
        if field.lower() == b"cookie":
            pairs = (pair.strip(b" \t").partition(b"=") for pair in content.split(b";"))
            values += [text for key, equals, text in pairs if equals and key == name_bytes]
    if len(values) > 1:
        raise Unauthorized(
            f"the cookie {name} came twice; remove the cookies of this site and sign in again",
            reason="cookie",
        )
    if not values or not values[0]:
        return None
    if not values[0].isascii():
        raise Unauthorized(f"the cookie {name} holds no valid token; sign in again", reason="cookie")
    return values[0].decode("ascii")


def session_cookie(config: Config, token: str, seconds: int = limits.ACCESS_TOKEN) -> str:
    """The Set-Cookie value for the session. `token`: its capability token as text."""
    return _cookie(config, session_name(config), token, "/", "Lax", seconds)


def refresh(config: Config, token: str, seconds: int = limits.REFRESH_TOKEN) -> str:
    """The Set-Cookie value for the refresh token. Browsers send this cookie to one path only."""
    return _cookie(config, refresh_name(config), token, REFRESH_PATH, "Strict", seconds)


def flow_cookie(config: Config, token: str, seconds: int) -> str:
    """The Set-Cookie value for an unfinished sign-in by an identity provider. SameSite is Lax, because the
    browser comes back from another site, the provider's."""
    return _cookie(config, flow_name(config), token, "/", "Lax", seconds)


def cleared_cookies(config: Config) -> tuple[str, str]:
    """The Set-Cookie values that delete the session cookie and the refresh cookie."""
    return session_cookie(config, "", 0), refresh(config, "", 0)


def require_own_page(config: Config, request: Request) -> None:
    """Raise Forbidden unless the request comes from a page of this node. The Origin header, if present, must
    name this node; without it, Fetch Metadata must say same-origin. SameSite alone is not enough."""
    origins = request.headers.getall("origin", [])
    sites = request.headers.getall("sec-fetch-site", [])
    ours = _own_origins(config).issuperset(origins) if origins else sites == ["same-origin"]
    if not ours:
        raise Forbidden(f"this request does not come from a page of {config.public_url}; open that and retry")


def own_navigation(config: Config, request: Request) -> bool:
    """Whether a page was opened by a person or by another page of this node, and not by another site.
    Browsers that send Fetch Metadata (headers about where a request comes from) tell it. For other browsers
    the result is True: they do not send the refresh cookie, which is SameSite=Strict, when another site opens
    a page."""
    sites = set(request.headers.getall("sec-fetch-site", []))
    origins = request.headers.getall("origin", [])
    return sites <= {"same-origin", "none"} and _own_origins(config).issuperset(origins)


def _own_origins(config: Config) -> frozenset[str]:
    scheme = "https" if config.secure else "http"
    return frozenset(f"{scheme}://{authority}" for authority in config.authorities())


def sent_by_browser(request: Request) -> bool:
    """Whether the request has headers that only browsers send."""
    return "origin" in request.headers or "sec-fetch-site" in request.headers


def _cookie(config: Config, name: str, value: str, path: str, same_site: str, seconds: int) -> str:
    secure = "; Secure" if config.secure else ""
    return f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}"
