"""The path policy: which paths a caller without the role `write` sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Visibility = Literal["public", "private", "open"]


class Policy:
    """Visibility by path. `number` counts changes of the policy. The rule with the longest path at or above a
    path decides; the rule "" applies to all; without a rule a path is visible. It applies to every seal, also
    to past seals."""

    __slots__ = ("_rules", "number")

    def __init__(self, number: int, rules: Mapping[str, Visibility]) -> None:
        self.number = number
        self._rules = dict(rules)

    def sees(self, path: str) -> bool:
        """Whether a file at `path` is visible."""
        at = path
        while at not in self._rules:
            if not at:
                return True
            at = at.rpartition("/")[0]
        return self._rules[at] != "private"

    def may_see_below(self, path: str) -> bool:
        """Whether some file at or below `path` may be visible."""
        return self.sees(path) or any(self._below(path, "public", "open"))

    def sees_all_below(self, path: str) -> bool:
        """Whether all files at or below `path` are visible."""
        return self.sees(path) and not any(self._below(path, "private"))

    def _below(self, path: str, *what: Visibility) -> list[bool]:
        prefix = f"{path}/" if path else ""
        return [
            True for rule_path, kind in self._rules.items() if kind in what and rule_path.startswith(prefix)
        ]
