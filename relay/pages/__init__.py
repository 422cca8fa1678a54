"""The pages of the relay: repositories, sign-in, approval of a terminal, tokens. They have no scripts, and
share one stylesheet.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from sanic.response import HTTPResponse

from localstore.core.encoding import hex_digest
from localstore.core.errors import NotFound, SvcError
from relay.caller import Caller
from relay.http.problems import rate_headers
from relay.http.routing import Reply
from relay.render.templates import escape_unreadable, make_environment

HTML = "text/html; charset=utf-8"

_SPACES = re.compile(r"\s*([{};,])\s*")

# A browser must say where a form comes from: under `no-referrer` it would send `Origin: null`.
_HEADERS = {"referrer-policy": "same-origin", "cache-control": "no-store"}


def page(
    caller: Caller,
    template: str,
    error: SvcError | None = None,
    *,
    status: int = 200,
    cookies: tuple[str, ...] = (),
    **values: Any,
) -> Reply:
    """Render a template as an answer. The template escapes `values`. `error`: a refusal to explain on the
    page. It sets the status of the answer and, for a rate limit, its headers. The template gets the refusal's
    message as `problem`, unless `values` has a `problem` of its own."""
    values = {"problem": error.detail if error else "", **values}
    values["problem"] = escape_unreadable(values["problem"])
    status = error.status if error else status
    html = (
        make_environment()
        .get_template(template)
        .render(me=caller.principal, node=caller.node.config.node_name, **values)
    )
    headers = _HEADERS | (rate_headers(error) if error else {})
    return Reply(html, status=status, headers=headers, content_type=HTML, cookies=cookies)


def show(caller: Caller, template: str, **values: Any) -> Reply:
    """Answer with a page of a repository. Its ETag covers the whole HTML, including the one-time keys in its
    forms. Caches must revalidate the page before each use. If the reader is signed in, only the browser may
    cache it."""
    reply = page(caller, template, **values)
    html = str(reply.body).encode()
    shared = "private" if caller.principal is not None else "public"
    headers = {"referrer-policy": "same-origin", "cache-control": f"{shared}, no-cache", "vary": "Cookie"}
    return Reply(html, headers=headers, content_type=HTML, etag=f'"{hex_digest(html)[:32]}"', compress=True)


def refusal(error: SvcError) -> HTTPResponse:
    """The page that shows a refusal. Hidden and missing things give the same bytes."""
    is_missing = isinstance(error, NotFound)
    html = (
        make_environment()
        .get_template("refusal.html")
        .render(
            me=None,
            node="svc",
            title="Not found" if is_missing else error.title,
            status=404 if is_missing else error.status,
            detail="" if is_missing else escape_unreadable(error.detail),
        )
    )
    headers = {"cache-control": "no-store", **rate_headers(error)}
    return HTTPResponse(html, 404 if is_missing else error.status, headers=headers, content_type=HTML)


def redirect_for_good(path: str) -> Reply:
    """A redirect to the permanent address of the page (301)."""
    return Reply(status=301, headers={"cache-control": "no-cache", "location": path})


def redirect(path: str, *, cookies: tuple[str, ...] = ()) -> Reply:
    """A redirect to `path` with GET (303)."""
    return Reply(status=303, headers={**_HEADERS, "location": path}, cookies=cookies)


@cache
def stylesheet() -> bytes:
    """The stylesheet of all pages, without unneeded spaces."""
    text = (Path(__file__).parent / "style.css").read_text("utf-8")
    return _SPACES.sub(r"\1", text).encode()
