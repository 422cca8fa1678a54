"""Decides whether a security advisory affects a version of a package, by the rules of OSV (the Open Source
Vulnerability format)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from packaging.version import InvalidVersion, Version

from localstore.core.model.advisory import Range, RangeEvent

_SEMVER = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


def is_affected(
    ecosystem: str, version: str, ranges: Sequence[Range], versions: Sequence[str]
) -> bool | None:
    """Whether an advisory affects `version`. `versions`, `ranges`: the versions that the advisory lists, and
    its ranges of versions; if both are empty, it affects all versions. Returns None if this cannot be
    decided, because a version does not follow the rules of its ecosystem."""
    if version in versions or not (ranges or versions):
        return True
    comparable = [range_ for range_ in ranges if range_.type in ("SEMVER", "ECOSYSTEM")]
    answers = [_is_within(ecosystem, version, range_.events) for range_ in comparable]
    if True in answers:
        return True
    return None if None in answers or len(comparable) < len(ranges) else False


def _is_within(ecosystem: str, version: str, events: Sequence[RangeEvent]) -> bool | None:
    at = _order(ecosystem, version)
    if at is None:
        return None
    affected = False
    for event in events:
        bound = event.introduced or event.fixed or event.last_affected or ""
        if bound == "0":
            affected = event.introduced is not None or affected
            continue
        limit = _order(ecosystem, bound)
        if limit is None:
            return None
        if event.introduced is not None and at >= limit:
            affected = True
        elif (event.fixed is not None and at >= limit) or (event.last_affected is not None and at > limit):
            affected = False
    return affected


def _order(ecosystem: str, text: str) -> Any:
    """The sort key of a version, comparable with other keys of the same ecosystem; None if the text is not a
    version."""
    if ecosystem == "PyPI":
        try:
            return Version(text)
        except InvalidVersion:
            return None
    match = _SEMVER.fullmatch(text.removeprefix("v")) if len(text) <= 200 else None
    if match is None:
        return None
    before = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (match[4] or "").split(".")
    )
    return tuple(map(int, match.group(1, 2, 3))), match[4] is None, before
