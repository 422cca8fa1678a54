"""The pages the relay serves: signing in, letting a terminal in, tokens. No scripts, one stylesheet."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from relay.caller import Caller
from relay.routing import Reply

HTML = "text/html; charset=utf-8"

# A browser must say where a form comes from: under `no-referrer` it would send `Origin: null`.
_HEADERS = {"referrer-policy": "same-origin", "cache-control": "no-store"}


def page(
    caller: Caller, template: str, status: int = 200, *, cookies: tuple[str, ...] = (), **values: Any
) -> Reply:
    """The template as an answer. `values` are escaped where they are shown."""
    html = (
        _templates()
        .get_template(template)
        .render(me=caller.principal, node=caller.node.config.node_name, **values)
    )
    return Reply(html, status=status, headers=_HEADERS, content_type=HTML, cookies=cookies)


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
