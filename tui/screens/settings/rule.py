"""The form for one protection rule, which applies to the branches that match its pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import ComposeResult

from localstore.core.model import protection
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from tui import contents
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.settings.form import Field, FormDrafts, SettingsForm, fault_of
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

FIELDS = (
    Field("require_review", "a review", "flag"),
    Field("required_approvals", "approvals", "number", "0"),
    Field("fresh_approvals", "of this change", "flag"),
    Field("require_resolution", "threads resolved", "flag"),
    Field("require_checks", "checks pass", "flag"),
    Field("lock_writes", "writes locked", "flag"),
    Field("lock_deletions", "deletion locked", "flag"),
)


def in_words(rule: ProtectionSet) -> str:
    """Returns as text what a protection rule requires."""
    words = [field.label for field in FIELDS if field.kind == "flag" and getattr(rule, field.name)]
    if rule.required_approvals:
        words.insert(0, f"{rule.required_approvals} approvals")
    return ", ".join(words) or "not deleted"


class RuleScreen(Base):
    ACTIONS = (
        Action("open", ("enter",), "change", "svc repo protect set {pattern}", "signed_in", footer=True),
        Action("save", ("S",), "save", "svc repo protect set {pattern}", "signed_in", True, "protection.set"),
        Action("undo", ("U",), "take changes back"),
        Action(
            "clear",
            ("x",),
            "remove the rule",
            "svc repo protect clear {pattern}",
            "signed_in",
            True,
            "protection.clear",
        ),
    )

    def __init__(self, repo: Repo, pattern: str, rule: ProtectionSet) -> None:
        super().__init__()
        self.repo, self.pattern, self._rule = repo, pattern, rule
        self.form = SettingsForm(FIELDS, self._fault)
        self._kept = FormDrafts()

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def content(self) -> ComposeResult:
        yield Lines(id="rule")

    def title_parts(self) -> Sequence[Part]:
        return (
            (f" {safe(self.repo.full_name)}", "title"),
            (f"  branches {safe(self.pattern)}", "accent"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = FormDrafts(self.svc.drafts, f"{self.repo.id}-rules")
        self.form.changed = self._kept.of(self.pattern)
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.protections(self.repo.id), self._take_rules)

    def _take_rules(self, rules: list[Protection], at: float) -> None:
        self._rule = next((rule for rule in rules if rule.pattern == self.pattern), ProtectionSet())
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        values = {field.name: getattr(self._rule, field.name) for field in FIELDS}
        self.form.show(values)
        rows = [Item(None, (("A branch with a rule is not deleted. A merge into it needs:", "dim"),))]
        rows += self.form.rows("rule")
        waiting = self.svc.describe_queue(f"/repos/{self.repo.id}/protections")
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in waiting]
        self.query_one("#rule", Lines).show(sequence(rows))

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, tuple):
            return
        _, kind, name = event.key
        if kind == "save":
            self.do_save()
        elif self.form.fields[name].kind == "flag":
            self._change(name, not self.form.value(name))
        else:
            label = "how many approvals"
            self.ask(label, lambda text: self._change(name, _number(text)), value=str(self.form.value(name)))

    def _change(self, name: str, value: Any) -> None:
        self.form.set(name, value)
        self._kept.put(self.pattern, self.form.changed)
        self.paint()

    def do_undo(self) -> None:
        self.form.changed.clear()
        self._kept.put(self.pattern, {})
        self.paint()

    def do_save(self) -> None:
        if self.form.faults():
            self.say("mend what is marked first; nothing was sent", "bad")
            return
        body = ProtectionSet(**self.form.values())
        repo, pattern = self.repo, self.pattern
        self.svc.queue(
            lambda sending: sending.put(
                protection.SET, body, about=repo.full_name, id=repo.id, pattern=pattern
            ),
            lambda: self._take_rule(body),
        )

    def _take_rule(self, body: ProtectionSet) -> None:
        self._rule = body
        self.do_undo()

    def do_clear(self) -> None:
        def clear() -> None:
            self.do_undo()
            self.svc.act(protection.CLEAR, about=self.repo.full_name, id=self.repo.id, pattern=self.pattern)

        question = f"The rule for {self.pattern} will be removed. To do it, type its pattern."
        self.confirm_by_name(question, self.pattern, clear, "that is not its pattern; the rule stays")

    def _fault(self, name: str, value: Any) -> str:
        if name == "required_approvals" and not isinstance(value, int):
            return f"{value} is not a number"
        return fault_of(ProtectionSet, {name: value})


def _number(text: str) -> int | str:
    number = whole_number(text.strip(), 9)
    return text.strip() if number is None else number
