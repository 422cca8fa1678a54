"""The panels Checks and Branch rules of the settings: the checks that are required, and the protection rules
of branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from localstore.core import branch_pattern
from localstore.core.model import protection
from localstore.core.model.check import Check
from localstore.core.model.protection import Protection, ProtectionSet
from svc.flows.proposal.freed import Asked
from tui import contents
from tui.screens.proposal.words import last_run
from tui.screens.settings.choose_checks import choose_checks, put_changes
from tui.screens.settings.form import LABEL, FormDrafts
from tui.screens.settings.freed_merges import FreedMerges
from tui.screens.settings.panel import Panel
from tui.screens.settings.removed_rules import RemovedRules
from tui.screens.settings.rule import RuleScreen, apply_changes, name_of_drafts, with_draft
from tui.screens.settings.rule_words import in_words, sentences
from tui.text import Part, safe
from tui.texts import first_words
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from tui.screens.settings.panel import SettingsTab

SELDOM = 20.0  # seconds between two looks at the merges that wait: they cost the server most of this tab


class Checks(Panel):
    NAME = "Checks"
    RIGHTS: ClassVar = {"check": "check.enable", "choose": "check.enable"}

    VERBS: ClassVar = {"choose": "choose"}

    _checks: tuple[Check, ...] | None = None  # until they are read

    def __init__(self, of: SettingsTab) -> None:
        super().__init__(of)
        self.merges = FreedMerges(of.of, of.of.repo, lambda: None)

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
        self._change({name: name not in (self.required or ())})

    def ask_for_check(self) -> None:
        choose_checks(self.of.of, self._checks or (), self.required or (), "at once", self._change)

    def _change(self, changes: Mapping[str, bool]) -> None:
        """Send which checks are required. If merges land because fewer are, ask first."""
        rules = cast("BranchRules", self.of.panels[BranchRules.NAME]).rules
        before = Asked(rules, self.required or ())
        after = before.with_checks(apply_changes(self.required or (), changes))
        repo = self.repo
        self.merges.confirm(
            before,
            after,
            lambda: self.svc.outbox.queue(lambda sending: put_changes(sending, repo, changes)),
            end="Change the required checks?",
        )


class BranchRules(Panel):
    NAME = "Branch rules"
    RIGHTS: ClassVar = {
        "rule": "protection.set",
        "protect": "protection.set",
    }

    VERBS: ClassVar = {
        "rule": "open the rule",
        "protect": "name a branch",
    }

    rules: tuple[Protection, ...] = ()
    _drafts = FormDrafts()  # unsaved changes of rules, by pattern
    _removed = RemovedRules()

    def load(self) -> None:
        self.look()
        self.svc.load(contents.protections(self.repo.id), self._paint_rules)

    def look(self) -> None:
        """Read which rules have unsaved changes, and which were removed."""
        self._drafts = FormDrafts(self.svc.drafts, name_of_drafts(self.repo.id))
        self._removed = RemovedRules(self.svc.drafts, self.repo.id)

    def _paint_rules(self, rules: list[Protection], at: float) -> None:
        self.rules = tuple(rules)
        self._removed.note_rules([rule.pattern for rule in rules], at)
        if any(rule.require_checks for rule in rules):  # else no merge waits for a check
            cast("Checks", self.of.panels[Checks.NAME]).merges.load(SELDOM)
        self.paint()

    def rows(self) -> list[Item]:
        rules = {rule.pattern: rule for rule in self.rules}
        removed = self._removed.patterns(self.svc.clock())
        patterns = sorted({*rules, *self._drafts.forms(), *removed})
        return [
            *(self._rule_row(pattern, rules.get(pattern)) for pattern in patterns),
            self.row("protect", "", "protect branches", "a name, or such as release/*", "dim"),
        ]

    def _rule_row(self, pattern: str, rule: Protection | None) -> Item:
        """Returns the row of a rule. If the rule has a draft, the row says so first, because the words may be
        cut, and then what the draft asks for."""
        has_draft = pattern in self._drafts.forms()
        words = in_words(rule, self._required) if rule is not None else "no rule yet"
        if self.is_removed(pattern):
            words = "- removed, U brings it back"
        if has_draft:
            words = in_words(*with_draft(rule or ProtectionSet(), self._drafts.of(pattern), self._required))
        row = self.row("rule", pattern, pattern, words, "text" if rule is not None else "dim")
        if not has_draft:
            return row
        label, *value = row.left
        mark: tuple[Part, ...] = (("* ", "warn"), (label[0][2:], label[1]), ("not saved: ", "warn"))
        return row._replace(left=(*mark, *value))

    def is_removed(self, pattern: str) -> bool:
        """Whether the rule for a pattern was removed here within the last day, and was not made again."""
        return self._find(pattern) is None and self._removed.find(pattern, self.svc.clock()) is not None

    def details(self, kind: str, name: str) -> list[tuple[Part, ...]]:
        rule = self._find(name)
        if kind != "rule":
            return []
        draft: tuple[Part, ...] = (("* a draft, not saved: enter opens it, S there saves it", "warn"),)
        details: list[tuple[Part, ...]] = [draft] if name in self._drafts.forms() else []
        was = self._removed.find(name, self.svc.clock())
        if rule is None and was is not None:
            details.append((("removed; it was: ", "dim"), (safe(in_words(was, self._required)), "text")))
            details.append((("U ", "accent"), ("makes it again; what has merged stays merged", "dim")))
        if rule is None:
            return details
        means = sentences(rule, self._required)
        now = "as saved: " if details else ""
        details.append(((now, "dim"), (safe(" ".join(means)), "text")))
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
        if kind == "rule":
            self._open(name, self._find(name) or ProtectionSet())
        else:
            self.protect("")

    def bring_back(self, pattern: str) -> None:
        """Make a removed rule again as it was."""
        rule = self._removed.find(pattern, self.svc.clock())
        if rule is not None:
            self.act(protection.SET, rule, pattern=pattern)

    def _find(self, pattern: str) -> Protection | None:
        return next((rule for rule in self.rules if rule.pattern == pattern), None)

    def protect(self, branch: str) -> None:
        """Ask for the pattern of a new rule. `branch`: with what the prompt begins."""
        self.ask("branch: a name, or a pattern such as release/*", self._new_rule, branch)

    def _new_rule(self, text: str) -> None:
        pattern = text.strip()
        if pattern:
            self._open(pattern, self._find(pattern) or ProtectionSet())

    def _open(self, pattern: str, rule: ProtectionSet) -> None:
        self.of.app.push_screen(RuleScreen(self.repo, pattern, rule))
