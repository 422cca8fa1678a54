"""The panel Checks of the settings: the checks that are required, and the protection rules of branches."""

from __future__ import annotations

from typing import ClassVar

from localstore.core.model import check
from localstore.core.model.check import Check
from localstore.core.model.protection import Protection, ProtectionSet
from tui import contents
from tui.screens.settings.panel import Panel
from tui.screens.settings.rule import RuleScreen, in_words
from tui.widgets.lines import Item


class Checks(Panel):
    NAME = "Checks"
    RIGHTS: ClassVar = {"check": "check.enable", "rule": "protection.set"}

    _checks: tuple[Check, ...] = ()
    _rules: tuple[Protection, ...] = ()

    def load(self) -> None:
        self.svc.load(contents.checks(self.repo.id), self._paint_checks)
        self.svc.load(contents.protections(self.repo.id), self._paint_rules)

    def _paint_checks(self, checks: list[Check], at: float) -> None:
        self._checks = tuple(checks)
        self.paint()

    def _paint_rules(self, rules: list[Protection], at: float) -> None:
        self._rules = tuple(rules)
        self.paint()

    def rows(self) -> list[Item]:
        return [
            *(
                self.row(
                    "check", each.name, each.name, "✓ has to pass" if each.enabled else "- not asked for"
                )
                for each in self._checks
            ),
            self.row("check", "", "ask for a check", "press c", "dim"),
            *(self.row("rule", rule.pattern, rule.pattern, in_words(rule)) for rule in self._rules),
            self.row("rule", "", "protect branches", "by a name or a pattern such as release/*", "dim"),
        ]

    def chosen(self, kind: str, name: str) -> None:
        if kind == "rule":
            self._rule(name)
        elif name:
            enabled = any(each.name == name and each.enabled for each in self._checks)
            self.act(check.DISABLE if enabled else check.ENABLE, name=name)
        else:
            self.ask_for_check()

    def ask_for_check(self) -> None:
        def done(typed: str) -> None:
            if typed.strip():
                self.act(check.ENABLE, name=typed.strip())

        self.ask("name of a check that has to pass, such as test", done)

    def protect(self, branch: str) -> None:
        """Ask for the pattern of a new rule. The prompt begins with the name of a branch."""
        self.ask("branch, or pattern of branches", self._new_rule, branch)

    def _rule(self, pattern: str) -> None:
        rule = next((known_rule for known_rule in self._rules if known_rule.pattern == pattern), None)
        if rule is not None:
            self._open(pattern, rule)
        else:
            self.ask("branch, or pattern of branches", self._new_rule, self.repo.default_branch)

    def _new_rule(self, text: str) -> None:
        pattern = text.strip()
        if pattern:
            existing = next((rule for rule in self._rules if rule.pattern == pattern), None)
            self._open(pattern, existing or ProtectionSet())

    def _open(self, pattern: str, rule: ProtectionSet) -> None:
        self.of.app.push_screen(RuleScreen(self.repo, pattern, rule))
