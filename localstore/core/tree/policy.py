"""The path policy of a repository: which paths a caller without the role `write` sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

Visibility = Literal["public", "private", "open"]


class Policy:
    """Decides which paths are visible. The rule that decides about a path is the one for the path itself,
    else the one for the nearest directory above it that has a rule; a rule for "" covers all paths. Without
    any rule a path is visible. The policy applies to every seal, also to past ones. `number`: grows with each
    change of the policy."""

    __slots__ = ("_above_private", "_above_shown", "_rules", "number")

    def __init__(self, number: int, rules: Mapping[str, Visibility]) -> None:
        self.number = number
        self._rules = dict(rules)
        # Walks ask about every entry of a tree, so they look up a path and do not go through all the rules.
        self._above_shown = _directories_above(path for path, kind in rules.items() if kind != "private")
        self._above_private = _directories_above(path for path, kind in rules.items() if kind == "private")

    def sees(self, path: str) -> bool:
        """Whether a file at `path` is visible."""
        at = path
        while at not in self._rules:
            if not at:
                return True
            at = at.rpartition("/")[0]
        return self._rules[at] != "private"

    def may_see_below(self, path: str) -> bool:
        """Whether a file at or below `path` could be visible."""
        return self.sees(path) or path in self._above_shown

    def sees_all_below(self, path: str) -> bool:
        """Whether all files at or below `path` are visible."""
        return self.sees(path) and path not in self._above_private


def _directories_above(paths: Iterable[str]) -> frozenset[str]:
    """The directories above these paths, including ""."""
    above: set[str] = set()
    for path in paths:
        while path:
            path = path.rpartition("/")[0]
            if path in above:
                break
            above.add(path)
    return frozenset(above)
