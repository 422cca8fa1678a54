"""The Security tab: advisories about a repository and the protection rules of its branches. About franking
evidence there is only a note that this version of svc has none.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from localstore.core.model.catalog.advisory import Advisory
from localstore.core.model.collaboration.protection import Protection
from tui import contents
from tui.actions import Action
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.text import Part, ago, folded, safe
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

_FLAGS = (
    ("require_review", "review"),
    ("require_checks", "checks"),
    ("require_resolution", "resolved threads"),
    ("fresh_approvals", "fresh approvals"),
    ("lock_writes", "no writes"),
    ("lock_deletions", "no deletion"),
)
FRANKING = "not in this version of svc"
_ROLES = {"critical": "bad", "high": "bad", "medium": "warn", "low": "text"}


class Security(Split):
    LIST = "security"
    WAITING = "…"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc advisories {advisory}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._advisories: list[Advisory] | None = None
        self._rules: list[Protection] | None = None

    def titled(self) -> tuple[Part, ...]:
        return (("Security", "title"),)

    def count(self) -> str | None:
        return None if self._advisories is None else str(len(self._advisories) or "")

    def shown(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        self.svc.load(contents.advisories(self.of.repo.full_name), self._advised)
        self.svc.load(contents.protections(self.of.repo.id), self._protected)

    def _advised(self, advisories: list[Advisory], at: float) -> None:
        self._advisories = advisories
        self.paint()
        self.of.show_frame()

    def _protected(self, rules: list[Protection], at: float) -> None:
        self._rules = rules
        self.paint()

    def paint(self) -> None:
        rows: list[Item] = []
        if self._advisories is not None:
            rows.append(heading("Advisories", len(self._advisories)))
            rows += [self._advisory(advisory) for advisory in self._advisories]
            if not self._advisories:
                rows.append(Item(None, (("no advisories about this repository", "dim"),)))
            rows += [Item(None, (("", "text"),)), Item(None, (("Franking evidence", "title"),))]
            rows.append(Item(None, ((FRANKING, "dim"),)))
        if self._rules is not None:
            rows += [Item(None, (("", "text"),)), heading("Protection rules", len(self._rules))]
            rows += [_rule(rule) for rule in self._rules]
            if not self._rules:
                rows.append(Item(None, (("no rules; 8 opens Settings, where Checks makes one", "dim"),)))
        self.listed.show(sequence(rows))
        self.rest()

    def preview_of(self, key: Hashable) -> None:
        for advisory in self._advisories or ():
            if advisory.id == key:
                self.show_preview(key, safe(advisory.id), self._advisory_rows(advisory))
        for rule in self._rules or ():
            if f"rule {rule.pattern}" == key:
                self.show_preview(key, safe(rule.pattern), _rule_rows(rule))

    def _advisory_rows(self, advisory: Advisory) -> list[Row | tuple[Part, ...]]:
        """Summary, severity, other names and text of an advisory."""
        severity, now = advisory.database_specific.severity, self.svc.clock()
        rows: list[Row | tuple[Part, ...]] = list(
            folded([(safe(advisory.summary), "title")], self.preview_width)
        )
        when = f"  {ago(advisory.published, now)}"
        rows.append(((severity, _ROLES.get(severity, "text")), (when, "dim")))
        if advisory.aliases:
            rows.append((("also  ", "dim"), (safe(", ".join(advisory.aliases)), "text")))
        return [*rows, (("", "text"),), *self.text_rows(advisory.details or "no text")]

    def _advisory(self, advisory: Advisory) -> Item:
        severity = advisory.database_specific.severity
        left: tuple[Part, ...] = (
            (f"{severity:<9}", _ROLES.get(severity, "text")),
            (safe(advisory.summary), "text"),
        )
        right = ((f"{ago(advisory.published, self.svc.clock())} ", "dim"),)
        return Item(advisory.id, left, right, f"{advisory.id} {advisory.summary}")

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if any(advisory.id == event.key for advisory in self._advisories or ()):
            self.svc.run_words(["advisories", str(event.key)])


def _demands(rule: Protection) -> list[str]:
    """The requirements of a rule, in words."""
    demands = [words for flag, words in _FLAGS if getattr(rule, flag)]
    if rule.required_approvals:
        demands.append(f"{rule.required_approvals} approval{'' if rule.required_approvals == 1 else 's'}")
    return demands


def _rule_rows(rule: Protection) -> list[Row | tuple[Part, ...]]:
    """The requirements of a rule, one row each."""
    head: tuple[Part, ...] = (("branches  ", "dim"), (safe(rule.pattern), "accent"))
    demands: list[Row | tuple[Part, ...]] = [(("✓ ", "good"), (words, "text")) for words in _demands(rule)]
    kept_row: tuple[Part, ...] = (("✓ ", "good"), ("kept from deletion", "text"))
    return [
        head,
        (("", "text"),),
        kept_row,
        *demands,
        (("", "text"),),
        (("8 opens Settings, where it is changed", "dim"),),
    ]


def _rule(rule: Protection) -> Item:
    pattern = safe(rule.pattern)
    parts: tuple[Part, ...] = (
        (f"{pattern:<24} ", "accent"),
        (", ".join(_demands(rule)) or "kept from deletion", "text"),
    )
    return Item(f"rule {rule.pattern}", parts, (), rule.pattern)
