"""The panels Checks and Branch rules of the settings: the checks that are required, and the protection rules
of branches."""

from __future__ import annotations

from typing import ClassVar, cast

from localstore.core import branch_pattern
from localstore.core.model import check
from localstore.core.model.check import Check
from localstore.core.model.protection import Protection, ProtectionSet
from tui import contents
from tui.screens.settings.choose_checks import choose_checks, last_run
from tui.screens.settings.form import LABEL
from tui.screens.settings.panel import Panel
from tui.screens.settings.rule import RuleScreen
from tui.screens.settings.rule_words import in_words, sentences
from tui.text import Part, safe
from tui.texts import first_words
from tui.widgets.lines import Item


class Checks(Panel):
    NAME = "Checks"
    RIGHTS: ClassVar = {"check": "check.enable", "choose": "check.enable"}

    VERBS: ClassVar = {"choose": "choose"}

    _checks: tuple[Check, ...] | None = None  # until they are read

    @property
    def required(self) -> tuple[str, ...] | None:
        """The names of the required checks. None until they are read."""
        return None if self._checks is None else tuple(each.name for each in self._checks if each.enabled)

    def verb(self, kind: str, name: str) -> str:
        if kind == "check":
            return "require no more" if name in (self.required or ()) else "require"
        return super().verb(kind, name)

    def load(self) -> None:
        self.svc.load(contents.checks(self.repo.id), self._paint_checks)

    def _paint_checks(self, checks: list[Check], at: float) -> None:
        self._checks = tuple(checks)
        self.paint()

    def rows(self) -> list[Item]:
        return [
            *map(self._row, sorted(self._checks or (), key=lambda each: not each.enabled)),
            self.row("choose", "", "choose checks", "press c", "dim"),
        ]

    def _row(self, each: Check) -> Item:
        word: Part = ("✓ required    ", "good") if each.enabled else ("- not required", "dim")
        parts: tuple[Part, ...] = ((f"  {safe(each.name):<{LABEL}} ", "dim"), word)
        parts += (("  ", "text"), *last_run(each, self.svc.clock()))
        return Item((self.NAME, "check", each.name), parts, text=f"{each.name} {word[0]}")

    def details(self, kind: str, name: str) -> list[tuple[Part, ...]]:
        run = next((each.last for each in self._checks or () if each.name == name), None)
        if run is None:
            return []
        seal: tuple[Part, ...] = (("last run at ", "dim"), (run.seal_id[:8], "accent"))
        seal += ((f" on {safe(run.branch)}", "dim"), (" by ", "dim"))
        seal += ((f"@{safe(run.reported_by.handle or '?')}", "person"),)
        return [seal, *([((safe(first_words(run.summary)), "text"),)] if run.summary else [])]

    def chosen(self, kind: str, name: str) -> None:
        if kind == "choose":
            self.ask_for_check()
            return
        enabled = any(each.name == name and each.enabled for each in self._checks or ())
        self.act(check.DISABLE if enabled else check.ENABLE, name=name)

    def ask_for_check(self) -> None:
        choose_checks(self.of.of, self.repo, self._checks or ())


class BranchRules(Panel):
    NAME = "Branch rules"
    RIGHTS: ClassVar = {"rule": "protection.set", "protect": "protection.set"}

    VERBS: ClassVar = {"rule": "open the rule", "protect": "name a branch"}

    _rules: tuple[Protection, ...] = ()

    def load(self) -> None:
        self.svc.load(contents.protections(self.repo.id), self._paint_rules)

    def _paint_rules(self, rules: list[Protection], at: float) -> None:
        self._rules = tuple(rules)
        self.paint()

    def rows(self) -> list[Item]:
        required = self._required
        return [
            *(self.row("rule", rule.pattern, rule.pattern, in_words(rule, required)) for rule in self._rules),
            self.row("protect", "", "protect branches", "by a name or a pattern such as release/*", "dim"),
        ]

    def details(self, kind: str, name: str) -> list[tuple[Part, ...]]:
        rule = next((known_rule for known_rule in self._rules if known_rule.pattern == name), None)
        if kind != "rule" or rule is None:
            return []
        means = sentences(rule, self._required)
        details: list[tuple[Part, ...]] = [((safe(" ".join(means)), "text"),)]
        names = [ref.name for ref in self.of.of.refs if ref.type == "branch"]
        matching = [branch for branch in names if branch_pattern.matches(name, branch)]
        if names:
            details.append((("branches now: ", "dim"), (safe(", ".join(matching)) or "none", "accent")))
        return details

    @property
    def _required(self) -> tuple[str, ...] | None:
        """The names of the required checks. None until they are read."""
        return cast("Checks", self.of.panels[Checks.NAME]).required

    def chosen(self, kind: str, name: str) -> None:
        rule = next((known_rule for known_rule in self._rules if known_rule.pattern == name), None)
        if rule is not None:
            self._open(name, rule)
        else:
            self.protect(self.repo.default_branch)

    def protect(self, branch: str) -> None:
        """Ask for the pattern of a new rule. The prompt begins with the name of a branch."""
        self.ask("branch, or pattern of branches", self._new_rule, branch)

    def _new_rule(self, text: str) -> None:
        pattern = text.strip()
        if pattern:
            existing = next((rule for rule in self._rules if rule.pattern == pattern), None)
            self._open(pattern, existing or ProtectionSet())

    def _open(self, pattern: str, rule: ProtectionSet) -> None:
        self.of.app.push_screen(RuleScreen(self.repo, pattern, rule))
