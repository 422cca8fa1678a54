"""Holds every answer that the tests of the relay get against the status codes of the OpenAPI document."""

from __future__ import annotations

import functools
import re

import httpx

from relay import domain
from relay.http import openapi

ANYWHERE = {405, 413, 431, 500, 503}
"""Answers of the server itself: no such method, too long a body or head, a mistake of ours, not now."""


def check(answer: httpx.Response) -> None:
    """Raise AssertionError for an answer of a route that its description does not name."""
    method, path = answer.request.method, answer.request.url.raw_path.decode("ascii").partition("?")[0]
    status = answer.status_code
    for pattern, template, described in _described():
        named = described.get("get" if method == "HEAD" else method.lower())
        if named is None or not pattern.fullmatch(path):
            continue
        if status in ANYWHERE or str(status) in named["responses"]:
            return
        raise AssertionError(f"{method} {template} answers {status}, which its description lacks")


@functools.cache
def _described() -> list[tuple[re.Pattern[str], str, dict[str, dict[str, dict[str, object]]]]]:
    """Pattern of paths, template and methods, those with the fewest parameters first."""
    domain.load()
    found = openapi.make_document()["paths"]
    last = {route.path.replace("...}", "}") for route in openapi.TABLE if "...}" in route.path}
    made = []
    for template in sorted(found, key=lambda one: one.count("{")):
        pattern = re.sub(r"\\\{[a-z0-9_]+\\\}", "[^/]+", re.escape(template))
        if template in last:
            pattern = pattern.removesuffix("[^/]+") + ".+" if pattern.endswith("[^/]+") else pattern
        made.append((re.compile(pattern), template, found[template]))
    return made
