"""The Security tab: advisories about a repository, franking evidence, and the rules of its branches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.catalog.advisory import Advisory
from localstore.core.model.collaboration.protection import Protection
from tui import contents
from tui.actions import Action
from tui.screens.view import View
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
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


class Security(View):
    ACTIONS = (Action("open", ("enter",), "open", "svc advisories {advisory}", footer=True),)

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._advisories: list[Advisory] | None = None
        self._rules: list[Protection] | None = None

    def compose(self) -> ComposeResult:
        yield Lines(id="security")

    def shown(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(contents.advisories(self.of.repo.full_name), self._advised)
        self.svc.load(contents.protections(self.of.repo.id), self._protected)

    def _advised(self, advisories: list[Advisory], at: float) -> None:
        self._advisories = advisories
        self._paint()

    def _protected(self, rules: list[Protection], at: float) -> None:
        self._rules = rules
        self._paint()

    def _paint(self) -> None:
        rows: list[Item] = []
        if self._advisories is not None:
            rows.append(_heading("Advisories", len(self._advisories)))
            rows += [self._advisory(advisory) for advisory in self._advisories]
            if not self._advisories:
                rows.append(Item(None, (("no advisories about this repository", "dim"),)))
            rows += [Item(None, (("", "text"),)), Item(None, (("Franking evidence", "title"),))]
            rows.append(Item(None, ((FRANKING, "dim"),)))
        if self._rules is not None:
            rows += [Item(None, (("", "text"),)), _heading("Protection rules", len(self._rules))]
            rows += [_rule(rule) for rule in self._rules]
            if not self._rules:
                rows.append(Item(None, (("no rules; 8 opens Settings, where Checks makes one", "dim"),)))
        self.query_one("#security", Lines).show(sequence(rows))

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


def _heading(name: str, count: int) -> Item:
    return Item(None, ((f"{name} ", "title"), (str(count), "dim")))


def _rule(rule: Protection) -> Item:
    demands = [words for flag, words in _FLAGS if getattr(rule, flag)]
    if rule.required_approvals:
        demands.append(f"{rule.required_approvals} approval{'' if rule.required_approvals == 1 else 's'}")
    pattern = safe(rule.pattern)
    parts: tuple[Part, ...] = (
        (f"{pattern:<24} ", "accent"),
        (", ".join(demands) or "kept from deletion", "text"),
    )
    return Item(f"rule {rule.pattern}", parts, (), rule.pattern)
