"""The form for one protection rule, which applies to the branches that match its pattern. Beside its rows
stands what the row under the cursor means."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from localstore.core import branch_pattern
from localstore.core.model import protection
from localstore.core.model.check import Check
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from tui import contents
from tui.actions import Action
from tui.screens.settings.choose_checks import choose_checks
from tui.screens.settings.form import LABEL, Field, FormDrafts, SettingsForm, fault_of
from tui.screens.settings.meanings import meaning
from tui.screens.settings.rule_words import FLAGS, approvals_of
from tui.screens.split import PANE, SPLIT_ACTIONS, SplitScreen
from tui.text import Part, fold, safe
from tui.widgets.lines import Item, Lines, heading, sequence

APPROVALS = "required_approvals"
RULE = "svc repo protect set {pattern}"
FIELDS = (
    Field(APPROVALS, "approvals", "number"),
    *(Field(flag, label, "flag") for flag, label in FLAGS.items()),
)
BEFORE = {APPROVALS: "A merge needs", "lock_writes": "Writing and deleting"}  # headings above fields
UNREAD = "not read yet"
NO_CHECK = "no check is required yet"
BLANK: tuple[Part, ...] = (("", "text"),)


class _RuleForm(SettingsForm):
    """The form of a rule. A number of approvals of 0 is shown as none."""

    def _format(self, field: Field, value: Any) -> str:
        return "0 (none)" if field.kind == "number" and not value else super()._format(field, value)


class RuleScreen(SplitScreen):
    LIST = "rule"
    SHARE = 52
    ACTIONS = (
        Action("open", ("enter",), "change", RULE, "signed_in", True, "protection.set"),
        Action("save", ("S",), "save", RULE, "signed_in", True, "protection.set"),
        Action("undo", ("U",), "take changes back", footer=True),
        Action(
            "check",
            ("c",),
            "required checks",
            "svc repo checks enable NAME",
            "signed_in",
            True,
            "check.enable",
        ),
        Action(
            "clear",
            ("x",),
            "remove the rule",
            "svc repo protect clear {pattern}",
            "signed_in",
            True,
            "protection.clear",
        ),
        PANE,
        *SPLIT_ACTIONS,
    )

    def __init__(self, repo: Repo, pattern: str, rule: ProtectionSet) -> None:
        super().__init__()
        self.repo, self.pattern, self._rule = repo, pattern, rule
        self._exists = isinstance(rule, Protection)
        self._checks: list[Check] | None = None  # until they are read
        self._branches: list[str] | None = None  # the same
        self.form = _RuleForm(FIELDS, self._fault)
        self._kept = FormDrafts()

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def title_parts(self) -> Sequence[Part]:
        return (
            (f" {safe(self.repo.full_name)}", "title"),
            ("  rule for branches ", "dim"),
            (safe(self.pattern), "accent"),
        )

    def make_title(self) -> tuple[Part, ...]:
        return ((f"Rule for {safe(self.pattern)}", "title"),)

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Saving and undoing have one only if something
        is changed, and removing only if the server has the rule."""
        if action.id in ("save", "undo"):
            return super().label_of(action) if self.form.changed else ""
        if action.id == "clear":
            return super().label_of(action) if self._exists else ""
        return self.pane_label() if action.id == "pane" else super().label_of(action)

    def facts(self) -> dict[str, str]:
        return {"pattern": self.pattern}

    def command_of(self, action: Action) -> str:
        """Returns the command that does what an action does now. The one that saves has what the form
        says."""
        if action.id == "open":
            return ""
        return f"{RULE}{self._options()}" if action.id == "save" else action.command

    def _options(self) -> str:
        """Returns the options of the command that makes a rule like the form."""
        if self.form.faults():
            return ""
        values = self.form.values()
        count = values.pop(APPROVALS)
        options = [f"--{name.replace('_', '-')}" for name, is_on in values.items() if is_on]
        approvals = [f"--require-review --required-approvals {count}"] if count else []
        return "".join(f" {option}" for option in (*approvals, *options))

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = FormDrafts(self.svc.drafts, f"{self.repo.id}-rules")
        self.form.changed = self._kept.of(self.pattern)
        self.paint()
        self._load_beside()

    def do_refresh(self) -> None:
        self.svc.load(contents.protections(self.repo.id), self._take_rules)
        self._load_beside()

    def _load_beside(self) -> None:
        """Request what the explanations name: the checks and the branches."""
        self.svc.load(contents.checks(self.repo.id), self._take_checks)
        self.svc.load(contents.refs(self.repo.id), self._take_refs)

    def _take_rules(self, rules: list[Protection], at: float) -> None:
        rule = next((rule for rule in rules if rule.pattern == self.pattern), None)
        self._exists, self._rule = rule is not None, rule or ProtectionSet()
        self.paint()

    def _take_checks(self, checks: list[Check], at: float) -> None:
        self._checks = checks
        self.paint()

    def _take_refs(self, refs: list[Ref], at: float) -> None:
        self._branches = [ref.name for ref in refs if ref.type == "branch"]
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    # --- rows

    def paint(self) -> None:
        if not self.has_widgets:
            return
        rule = self._rule
        values = {field.name: getattr(rule, field.name) for field in FIELDS}
        self.form.show(values | {APPROVALS: approvals_of(rule)})
        rows: list[Item] = []
        for row in self.form.rows("rule"):
            name = row.key[2] if isinstance(row.key, tuple) else ""
            if name in BEFORE:
                rows += [Item(None, BLANK)] if rows and self.previews else []
                rows.append(heading(BEFORE[name]))
            rows.append(row)
            if name == "lock_writes":
                rows.append(_row("deletion", "deletion", "refused by any rule"))
        rows += [Item(None, BLANK)] if self.previews else []
        rows += [heading("Branches"), _row("branches", "that match now", self._matching_words())]
        rows += self._meaning_rows()
        waiting = self.svc.describe_queue(f"/repos/{self.repo.id}/protections")
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in waiting]
        self.query_one("#rule", Lines).show(sequence(rows))
        self.renew()

    def _meaning_rows(self) -> list[Item]:
        """Returns rows with what the row under the cursor means, if there is no room for a preview."""
        key = self.listed.key
        if self.previews or not isinstance(key, tuple):
            return []
        words = fold([(meaning("rule", key[1], key[2]), "dim")], max(20, self.app.size.width - 2))
        return [Item(None, BLANK), *(Item(None, ((" ", "text"), *row)) for row in words)]

    def on_lines_moved(self, event: Lines.Moved) -> None:
        if event.lines is self.listed and not self.previews:
            self.paint()

    def _matching(self) -> list[str]:
        return [name for name in self._branches or () if branch_pattern.matches(self.pattern, name)]

    def _matching_words(self) -> str:
        return UNREAD if self._branches is None else ", ".join(self._matching()) or "none"

    def preview_of(self, key: Hashable) -> None:
        """Show what the row with this key means."""
        if not isinstance(key, tuple):
            return
        _, kind, name = key
        width = self.preview_width
        field = self.form.fields.get(name)
        label = field.label if field is not None else name or kind
        rows = fold([(meaning("rule", kind, name), "text")], width)
        if name == "require_checks":
            rows += [BLANK, *self._check_rows(width)]
        elif name == "branches":
            rows += [BLANK, *(((safe(branch), "accent"),) for branch in self._matching())]
        if field is not None or kind == "save":
            why = self.svc.find_refusal(self.ACTIONS[0])
            does = "enter types another number" if name == APPROVALS else "enter changes it, S saves"
            last: Part = (f"✗ {safe(why)}", "warn") if why else (does, "dim")
            rows += [BLANK, *fold([last], width)]
        self.show_preview(key, label, rows)

    def _check_rows(self, width: int) -> list[tuple[Part, ...]]:
        """Returns rows with the names of the required checks."""
        if self._checks is None:
            return [((UNREAD, "dim"),)]
        required = [check.name for check in self._checks if check.enabled]
        if not required:
            return fold([(f"! {NO_CHECK}, so no merge waits for one: c chooses", "warn")], width)
        rows: list[tuple[Part, ...]] = [(("Required here", "title"), ("  c chooses", "dim"))]
        return [*rows, *((("✓ ", "good"), (safe(name), "text")) for name in required)]

    # --- changes

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, tuple):
            return
        _, kind, name = event.key
        why = self.svc.find_refusal(self.ACTIONS[0])
        if why:
            self.say(why, "warn")
        elif kind == "save":
            self.do_save()
        elif kind != "field":
            self.say(meaning("rule", kind, name), "dim")
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

    def do_check(self) -> None:
        if self._checks is None:
            self.say("the checks are not read yet; r asks again", "warn")
        else:
            choose_checks(self, self.repo, self._checks)

    def do_save(self) -> None:
        if self.form.faults():
            self.say("mend what is marked first; nothing was sent", "bad")
            return
        values = self.form.values()
        rule = ProtectionSet(**{name: getattr(self._rule, name) for name in ProtectionSet.__struct_fields__})
        body = replace(rule, **values, require_review=bool(values[APPROVALS]))
        repo, pattern = self.repo, self.pattern
        self.svc.queue(
            lambda sending: sending.put(
                protection.SET, body, about=repo.full_name, id=repo.id, pattern=pattern
            ),
            lambda: self._take_rule(body),
        )

    def _take_rule(self, body: ProtectionSet) -> None:
        self._rule, self._exists = Protection(pattern=self.pattern, **asdict(body)), True
        self.do_undo()

    def do_clear(self) -> None:
        def clear() -> None:
            self.do_undo()
            self.svc.act(protection.CLEAR, about=self.repo.full_name, id=self.repo.id, pattern=self.pattern)

        if not self._exists:
            self.say(f"there is no rule for {self.pattern} yet", "dim")
            return
        question = f"The rule for {self.pattern} will be removed. To do it, type its pattern."
        self.confirm_by_name(question, self.pattern, clear, "that is not its pattern; the rule stays")

    def _fault(self, name: str, value: Any) -> str:
        if name == APPROVALS and not isinstance(value, int):
            return f"{value} is not a number"
        return fault_of(ProtectionSet, {name: value})


def _row(name: str, label: str, value: str) -> Item:
    """Returns a row that says something and changes nothing."""
    return Item(
        ("rule", "said", name),
        ((f"  {label:<{LABEL}} ", "dim"), (safe(value), "text")),
        text=f"{label} {value}",
    )


def _number(text: str) -> int | str:
    number = whole_number(text.strip(), 9)
    return text.strip() if number is None else number
