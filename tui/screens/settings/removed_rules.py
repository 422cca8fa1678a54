"""The rules that were removed in the app within the last day, so that they can be brought back."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from localstore.core.model.protection import ProtectionSet
from tui.drafts import Drafts

DAY = 24 * 3600.0


class _Removed(msgspec.Struct, frozen=True):
    """A removed rule. `at`: when it was removed, in seconds since 1970."""

    rule: ProtectionSet
    at: float


class RemovedRules:
    """The removed rules of a repository by pattern, stored in a draft. If it cannot be read, there are
    none."""

    def __init__(self, drafts: Drafts | None = None, repo_id: str = "") -> None:
        self._drafts, self._name = drafts, f"{repo_id}-removed-rules"
        self._all: dict[str, _Removed] = {}
        text = drafts.read(self._name) if drafts is not None else ""
        if text:
            with suppress(msgspec.MsgspecError):
                self._all = msgspec.json.decode(text, type=dict[str, _Removed])

    def patterns(self, now: float) -> list[str]:
        return sorted(pattern for pattern in self._all if self.find(pattern, now) is not None)

    def find(self, pattern: str, now: float) -> ProtectionSet | None:
        """Returns what the rule for a pattern was, None if it was not removed within the last day."""
        removed = self._all.get(pattern)
        return removed.rule if removed is not None and now - removed.at < DAY else None

    def remember(self, pattern: str, rule: ProtectionSet, now: float) -> None:
        body = {name: getattr(rule, name) for name in ProtectionSet.__struct_fields__}
        newest = {name: removed for name, removed in self._all.items() if now - removed.at < DAY}
        self._all = {**newest, pattern: _Removed(ProtectionSet(**body), now)}
        self._store()

    def forget(self, pattern: str) -> None:
        if self._all.pop(pattern, None) is not None:
            self._store()

    def note_rules(self, patterns: Iterable[str], at: float) -> None:
        """Forget what was made again. `patterns`: those that had a rule at the time `at`."""
        for pattern in patterns:
            if pattern in self._all and self._all[pattern].at < at:
                self.forget(pattern)

    def _store(self) -> None:
        if self._drafts is not None:
            self._drafts.keep(self._name, msgspec.json.encode(self._all).decode() if self._all else "")
