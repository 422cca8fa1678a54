"""Finds the route of a path in a tree of path segments. Literal segments are tried before parameters.

Unlike in Sanic's router, a path matches only as it was sent (`/ok/` is not `/ok`). `{name}` matches one
non-empty segment and `{name...}` the non-empty rest. The gate decodes the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")
Params = dict[str, str]

_PARAMETER = re.compile(r"\{(\w+)(\.\.\.)?\}([^{}]*)")


@dataclass(slots=True)
class _Branch(Generic[T]):
    """A path segment that consists of a parameter, `{name}`, and perhaps literal text after it, as in
    `{sha}.tar.gz`."""

    name: str
    suffix: str
    below: _Place[T]


@dataclass(slots=True)
class _Place(Generic[T]):
    static: dict[str, _Place[T]] = field(default_factory=dict)
    branches: list[_Branch[T]] = field(default_factory=list)
    rest: dict[str, dict[str, T]] = field(default_factory=dict)  # parameter name → method → leaf
    here: dict[str, T] = field(default_factory=dict)  # method → leaf


class Router(Generic[T]):
    def __init__(self) -> None:
        self._root: _Place[T] = _Place()

    def add(self, method: str, path: str, leaf: T) -> None:
        """Register `leaf`, which `find` returns, for requests with this method at the declared `path` of a
        route. Raises ValueError if the method and a path of the same shape are registered already."""
        place = self._root
        methods = None
        for segment in path.split("/")[1:]:
            match = _PARAMETER.fullmatch(segment)
            if match is None:
                place = place.static.setdefault(segment, _Place())
            elif match[2]:
                methods = place.rest.setdefault(match[1], {})
            else:
                place = _below(place, match[1], match[3])
        methods = place.here if methods is None else methods
        if method in methods:
            raise ValueError(f"{method} {path} is declared twice")
        methods[method] = leaf

    def find(self, path: str) -> tuple[dict[str, T], Params] | None:
        """Find the declared path that matches `path`; of several, the one with the most literal segments.
        Returns (method → what was registered for this path, path parameters), or None if no path matches."""
        return _walk(self._root, path.split("/"), 1, {}) if path.startswith("/") else None


def _below(place: _Place[T], name: str, suffix: str) -> _Place[T]:
    for branch in place.branches:
        if (branch.name, branch.suffix) == (name, suffix):
            return branch.below
    branch = _Branch[T](name, suffix, _Place())
    place.branches.append(branch)
    place.branches.sort(key=lambda b: -len(b.suffix))
    return branch.below


def _walk(
    place: _Place[T], segments: Sequence[str], at: int, params: Params
) -> tuple[dict[str, T], Params] | None:
    if at == len(segments):
        return (place.here, params) if place.here else None
    segment = segments[at]
    literal = place.static.get(segment)
    if literal is not None and (match := _walk(literal, segments, at + 1, params)):
        return match
    for branch in place.branches:
        value = segment.removesuffix(branch.suffix)
        if value and segment.endswith(branch.suffix):
            match = _walk(branch.below, segments, at + 1, {**params, branch.name: value})
            if match:
                return match
    if segment:
        for name, methods in place.rest.items():
            return methods, {**params, name: "/".join(segments[at:])}
    return None


def parameters_of(path: str) -> tuple[str, ...]:
    """Names of the parameters of a declared path, in order."""
    return tuple(match[1] for match in _PARAMETER.finditer(path))


def allow_header(methods: Iterable[str]) -> str:
    """The value of the header Allow, which lists the methods."""
    return ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
