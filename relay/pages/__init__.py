"""The pages the relay serves: signing in, letting a terminal in, tokens. No scripts, one stylesheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from localstore.core.errors import SvcError
from relay.caller import Caller
from relay.http.problems import rate_headers
from relay.http.routing import Reply

HTML = "text/html; charset=utf-8"

# A browser must say where a form comes from: under `no-referrer` it would send `Origin: null`.
_HEADERS = {"referrer-policy": "same-origin", "cache-control": "no-store"}


def page(
    caller: Caller,
    template: str,
    status: int = 200,
    *,
    cookies: tuple[str, ...] = (),
    problem_of: SvcError | None = None,
    **values: Any,
) -> Reply:
    """The template as an answer. `values` are escaped where they are shown. `problem_of`: the refusal that
    the page tells; one for the rate has its headers."""
    html = (
        _templates()
        .get_template(template)
        .render(me=caller.principal, node=caller.node.config.node_name, **values)
    )
    headers = _HEADERS | (rate_headers(problem_of) if problem_of else {})
    return Reply(html, status=status, headers=headers, content_type=HTML, cookies=cookies)


def redirect(path: str, *, cookies: tuple[str, ...] = ()) -> Reply:
    """Go to `path` with GET (303)."""
    return Reply(status=303, headers={**_HEADERS, "location": path}, cookies=cookies)


@cache
def stylesheet() -> bytes:
    return (Path(__file__).parent / "style.css").read_bytes()


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("relay", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
