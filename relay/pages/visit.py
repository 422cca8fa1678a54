"""Before a page is shown, checks that the reader is signed in, with a token that stays valid for a while.

Pages run no scripts, so a token is renewed before a page is shown. The browser is redirected to
`/auth/refresh`, the only path to which it sends its refresh cookie, and back (docs/design/005).
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from sanic.request import Request

from localstore.core.errors import BadRequest
from relay.caller import Caller
from relay.domain.identity import session as sessions
from relay.http import cookies
from relay.http.routing import Reply
from relay.pages import page, redirect

PATH_CHARS = 2000  # of a path to go back to
SENT_TOO_LATE = "Your sign-in had run out, so nothing was changed yet. Check the page and send it again."


def in_browser(caller: Caller) -> bool:
    """Whether the caller's session came with a cookie. Pages accept only such sessions."""
    return caller.principal is not None and caller.principal.via == "cookie"


def is_valid_for_page(caller: Caller) -> bool:
    """Whether a page may be shown without renewing the token first."""
    return in_browser(caller) and not sessions.is_due(caller.me)


def is_due(caller: Caller) -> bool:
    """Whether the caller is signed in with a token that should be renewed before the page is shown."""
    return in_browser(caller) and sessions.is_due(caller.me)


def renew_and_return(request: Request) -> Reply:
    """A redirect that renews the token and then returns to the requested page."""
    return redirect(renewal_path(with_query(request.path, request)))


def with_query(path: str, request: Request) -> str:
    """The path with the query of the request, if there is one."""
    return f"{path}?{request.query_string}" if request.query_string else path


def refuse_late(caller: Caller, request: Request, page: str, **sent: str) -> Reply | None:
    """Refuse a form that was sent after the session had expired. Returns None if the session is valid.
    Otherwise the answer renews the session and redirects to `page`, which shows the `sent` fields again and
    says that nothing was done. Raises Forbidden for a form of another site."""
    cookies.require_own_page(caller.node.config, request)
    if in_browser(caller):
        return None
    return redirect(renewal_path(f"{page}?{urlencode({**sent, 'again': '1'})}"))


def redirect_to_login(return_to: str) -> Reply:
    return redirect(f"/auth/login?return_to={quote(return_to, safe='')}")


def to_renewing_page(caller: Caller, return_to: str, seconds: int) -> Reply:
    """A page that goes to `return_to` after `seconds`, and renews the token on the way. The browser then
    comes from our own page, so it sends cookies with SameSite=Strict."""
    return page(caller, "onward.html", path=f"{renewal_path(return_to)}&own=1", seconds=seconds)


def local_path(path: str) -> str:
    """Check the path to open after sign-in, and return it. Raises BadRequest for anything that a browser
    could read as another site."""
    if len(path) > PATH_CHARS:
        raise BadRequest(f"return_to is longer than {PATH_CHARS} characters")
    if path[:1] != "/" or path[1:2] in ("/", "\\") or not path.isascii() or not path.isprintable():
        raise BadRequest("return_to must be a path of this node: one slash, then no other")
    return path


def renewal_path(return_to: str) -> str:
    """The address that renews the session, or asks to sign in, and then redirects to `return_to`."""
    return f"{cookies.REFRESH_PATH}?return_to={quote(return_to, safe='')}"
