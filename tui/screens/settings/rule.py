"""The form for one protection rule, which applies to the branches that match its pattern. It begins with
what the rule means in whole sentences. What the row under the cursor means is shown beside the rows, or below
them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import asdict, replace

from localstore.core import branch_pattern
from localstore.core.model import protection
from localstore.core.model.check import Check
from localstore.core.model.limits import APPROVALS as MOST
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from localstore.core.numbers import whole_number
from svc.flows.outbox.actions import API
from svc.flows.proposal.freed import Asked, say_merged
from tui import contents
from tui.actions import Action
from tui.screens.settings.choose_checks import choose_checks, put_changes
from tui.screens.settings.form import LABEL, Field, FormDrafts, SettingsForm, fault_of
from tui.screens.settings.freed_merges import FreedMerges
from tui.screens.settings.meanings import meaning
from tui.screens.settings.removed_rules import RemovedRules
from tui.screens.settings.rule_words import FLAGS, NO_CHECK, approvals_of, in_words, sentences
from tui.screens.split import PANE, SPLIT_ACTIONS, SplitScreen
from tui.text import Part, fold, fold_after, safe
from tui.widgets.lines import Item, Lines, heading, queued_rows, sequence

if TYPE_CHECKING:
    from tui.sending import Sending

APPROVALS, CHECKS = "required_approvals", "checks"
RULE = "svc repo protect set {pattern}"
FIELDS = (
    Field(APPROVALS, "approvals", "number"),
    *(Field(flag, label, "flag") for flag, label in FLAGS.items() if flag != "lock_writes"),
    Field(CHECKS, "which (all rules)", "many", "none is chosen"),
    Field("lock_writes", FLAGS["lock_writes"], "flag"),
)
BEFORE = {APPROVALS: "A merge needs", "lock_writes": "Writing and deleting"}  # headings above fields
SHORT = {"more": "more", "fewer": "fewer", "check": "checks", "clear": "remove"}  # for the line of keys
UNREAD = "not read yet"
OF_ALL = "The checks change for every rule that asks for them, also for"
CHANGES = "enter changes it, S saves"
LOW = 25  # lines of a terminal below which the parts of the form have no empty rows between them
BLANK: tuple[Part, ...] = (("", "text"),)


class _RuleForm(SettingsForm):
    """The form of a rule. A number of approvals of 0 is shown as none. The checks are None until they are
    read."""

    def _format(self, field: Field, value: Any) -> str:
        if field.kind == "number" and not value:
            return "0 (none)"
        return UNREAD if field.name == CHECKS and value is None else super()._format(field, value)


class Known(NamedTuple):
    """What a rule was before a change. `exists`: whether the server had it. `required`: the required checks
    of the repository then, None if they were not read."""

    exists: bool
    rule: ProtectionSet
    required: Sequence[str] | None = None


class RuleScreen(SplitScreen):
    LIST = "rule"
    KEEPS_ESC = True
    SHARE = 52
    BELOW = 3
    ACTIONS = (
        Action("open", ("enter",), "change", RULE, "signed_in", True, "protection.set"),
        Action("save", ("S",), "save", RULE, "signed_in", True, "protection.set"),
        Action("undo", ("U",), "take changes back", footer=True),
        Action(
            "clear",
            ("x",),
            "remove the rule",
            "svc repo protect clear {pattern}",
            "signed_in",
            True,
            "protection.clear",
        ),
        Action("more", ("plus",), "one approval more", RULE, "signed_in", True, "protection.set"),
        Action("fewer", ("minus",), "one fewer", RULE, "signed_in", True, "protection.set"),
        Action(
            "check",
            ("c",),
            "required checks",
            "svc repo checks enable NAME",
            "signed_in",
            True,
            "check.enable",
        ),
        PANE,
        *SPLIT_ACTIONS,
    )

    def __init__(self, repo: Repo, pattern: str, rule: ProtectionSet) -> None:
        super().__init__()
        self.repo, self.pattern, self._rule = repo, pattern, rule
        self._exists = isinstance(rule, Protection)
        self._before: Known | None = None  # what the rule was before it was saved or removed here
        self._refused: set[str] = set()  # ids of the changes of this rule that the server has refused
        self._rules: list[Protection] = [rule] if isinstance(rule, Protection) else []  # of all branches
        self._checks: list[Check] | None = None  # until they are read
        self._required: list[str] | None = None  # the names of the required ones
        self._check_changes: dict[str, bool] = {}  # whether a check is required once saved, by name
        self._branches: list[str] | None = None  # the same
        self.form = _RuleForm(FIELDS, self._fault)
        self._kept, self._removed = FormDrafts(), RemovedRules()
        self._merges = FreedMerges(self, repo, self.paint)

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
        """Returns the label of an action in the line of keys. Saving has one only if something is changed,
        undoing also after something was saved, and removing only if the server has the rule."""
        key = self.listed.key
        if action.id in ("more", "fewer"):
            return self._shorten(action) if isinstance(key, tuple) and key[2] == APPROVALS else ""
        if action.id == "open" and isinstance(key, tuple) and key[1] == "said":
            return ""
        if action.id == "undo" and not self.form.changed:
            if self._before is None:
                return ""
            return "bring it back" if self._before.exists and not self._exists else "undo it"
        if action.id == "save":
            return super().label_of(action) if self.form.changed or not self._exists else ""
        if action.id == "clear":
            return self._shorten(action) if self._exists else ""
        return self.pane_label() if action.id == "pane" else self._shorten(action)

    def _shorten(self, action: Action) -> str:
        """Returns the label of an action, shortened for the line of keys. Returns "" if the account may not
        do it."""
        label = super().label_of(action)
        return SHORT.get(action.id, label) if label else ""

    def facts(self) -> dict[str, str]:
        return {"pattern": self.pattern}

    def command_of(self, action: Action) -> str:
        """Returns the command that does what an action does now. The one that saves has what the form
        says."""
        if action.id in ("open", "more", "fewer"):
            return ""
        return f"{RULE}{self._options()}" if action.id == "save" else action.command

    def _options(self) -> str:
        """Returns the options of the command that makes a rule like the form."""
        if self.form.faults():
            return ""
        values = self.form.values()
        count = values.pop(APPROVALS)
        values.pop(CHECKS)
        options = [f"--{name.replace('_', '-')}" for name, is_on in values.items() if is_on]
        approvals = [f"--require-review --required-approvals {count}"] if count else []
        return "".join(f" {option}" for option in (*approvals, *options))

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = FormDrafts(self.svc.drafts, name_of_drafts(self.repo.id))
        self._removed = RemovedRules(self.svc.drafts, self.repo.id)
        self.form.changed = self._kept.of(self.pattern)
        self._check_changes = self.form.changed.pop(CHECKS, {})
        removed = self._removed.find(self.pattern, self.svc.clock())
        if removed is not None and not self._exists:
            self._before = Known(True, removed)
        self._refused = self._find_refused()
        self.paint()
        self._load_beside()

    def do_refresh(self) -> None:
        self._load_beside()

    def _load_beside(self) -> None:
        """Request the rules, and what the explanations and questions name: the checks, the branches, and the
        merges that wait."""
        self.svc.load(contents.protections(self.repo.id), self._take_rules)
        self._merges.load()
        self.svc.load(contents.checks(self.repo.id), self._take_checks)
        self.svc.load(contents.refs(self.repo.id), self._take_refs)

    def _take_rules(self, rules: list[Protection], at: float) -> None:
        rule = next((rule for rule in rules if rule.pattern == self.pattern), None)
        self._rules = rules
        self._exists, self._rule = rule is not None, rule or ProtectionSet()
        self.paint()

    def _take_checks(self, checks: list[Check], at: float) -> None:
        self._checks = checks
        self._required = sorted(check.name for check in checks if check.enabled)
        self.paint()

    def _take_refs(self, refs: list[Ref], at: float) -> None:
        self._branches = [ref.name for ref in refs if ref.type == "branch"]
        self.paint()

    def queue_changed(self) -> None:
        before, self._refused = self._refused, self._find_refused()
        if self._refused - before:  # the rule is as it was, and there is nothing to undo
            self._before = None
            self._load_beside()
        self.paint()

    def _find_refused(self) -> set[str]:
        """Returns the ids of the changes of this rule, and of the required checks, that the server has
        refused."""
        path = protection.SET.target(id=self.repo.id, pattern=self.pattern).removeprefix(API)
        of_checks = f"/repos/{self.repo.id}/checks/"
        return {
            entry.id
            for entry in self.svc.outbox.entries
            if entry.state == "refused" and (entry.path == path or entry.path.startswith(of_checks))
        }

    # --- rows

    def paint(self) -> None:
        if not self.has_widgets:
            return
        rule = self._rule
        values: dict[str, Any] = {flag: getattr(rule, flag) for flag in FLAGS}
        self.form.show(values | {APPROVALS: approvals_of(rule), CHECKS: self._required})
        if self._required is not None:
            required = self._required
            self._check_changes = {
                name: is_on for name, is_on in self._check_changes.items() if is_on != (name in required)
            }
            self.form.set(CHECKS, apply_changes(required, self._check_changes))
        rows = self._meaning_rows()
        between = [Item(None, BLANK)] if self.previews or self.app.size.height >= LOW else []
        for row in self.form.rows("rule"):
            name = row.key[2] if isinstance(row.key, tuple) else ""
            if name in BEFORE:
                rows += between
                rows.append(heading(BEFORE[name]))
            rows.append(row)
            if name == "lock_writes":
                rows.append(_row("deletion", "deletion", "refused by any rule"))
        rows += [*between, heading("Branches"), _row("branches", "that match now", self._matching_words())]
        rows += queued_rows(self.svc.outbox.describe(f"/repos/{self.repo.id}/protections"))
        self.query_one("#rule", Lines).show(sequence(rows))
        self.renew()

    def _meaning_rows(self) -> list[Item]:
        """Returns rows with what the rule means in whole sentences, as the form says it now."""
        if self.form.faults():
            return []
        state = "not saved yet" if self.form.changed else "" if self._exists else "no rule yet: S makes it"
        rows = [heading("Once saved, it means" if state else "It means", right=f"{state} " if state else "")]
        width = max(20, self.list_width - 4)
        means = sentences(self._body(), self.form.value(CHECKS))
        others = [safe(rule.pattern) for rule in self._rules if rule.require_checks]
        others = [pattern for pattern in others if pattern != safe(self.pattern)]
        if self._check_changes and others:
            means.append(f"{OF_ALL} {', '.join(others)}.")
        for words in means:
            role = "warn" if words == NO_CHECK or words.startswith(OF_ALL) else "text"
            text = f"! {words} c chooses." if words == NO_CHECK else words
            rows += [Item(None, (("  ", "text"), *part)) for part in fold([(safe(text), role)], width)]
        merged = safe(say_merged(self._merges.merged, self._merges.merged))
        rows += (
            [Item(None, row) for row in fold_after([("● ", "agent")], [(merged, "agent")], width)]
            if merged
            else []
        )
        return rows

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
        if self.explains_below:
            why = self.svc.find_refusal(self.ACTIONS[0])
            refused = fold([(f"✗ {safe(why)}", "warn")], width) if why else []
            self.show_preview(key, label, [*refused, *rows])
            return
        if name in ("require_checks", CHECKS):
            rows += [BLANK, *self._check_rows(width)]
        elif name == "branches":
            rows += [BLANK, *(((safe(branch), "accent"),) for branch in self._matching())]
        if field is not None or kind == "save":
            why = self.svc.find_refusal(self.ACTIONS[0])
            does = "+ and − change it, enter types another number" if name == APPROVALS else CHANGES
            last: Part = (f"✗ {safe(why)}", "warn") if why else (does, "dim")
            rows += [BLANK, *fold([last], width)]
        self.show_preview(key, label, rows)

    def _check_rows(self, width: int) -> list[tuple[Part, ...]]:
        """Returns rows with the names of the required checks."""
        if self._checks is None:
            return [((UNREAD, "dim"),)]
        required = self.form.value(CHECKS)
        if not required:
            return fold([(f"! {NO_CHECK} c chooses.", "warn")], width)
        rows: list[tuple[Part, ...]] = [(("Required", "title"), ("  c chooses", "dim"))]
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
        elif name == CHECKS:
            self.do_check()
        elif self.form.fields[name].kind == "flag":
            self._change(name, not self.form.value(name))
        else:
            label = "how many approvals"
            self.ask(label, lambda text: self._change(name, _number(text)), value=str(self.form.value(name)))

    def _change(self, name: str, value: Any) -> None:
        self.form.set(name, value)
        self._keep()
        self.paint()

    def do_more(self) -> None:
        self._step(1)

    def do_fewer(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        """Change the number of approvals by one, wherever the cursor is."""
        now = self.form.value(APPROVALS)
        if isinstance(now, int) and 0 <= now + by <= MOST:
            self._change(APPROVALS, now + by)
        self.listed.go_to(("rule", "field", APPROVALS))

    def do_undo(self) -> None:
        """Take back what was changed and not saved. If nothing was, take back what was last sent here."""
        before = self._before
        if self.form.changed:
            self._drop_changes()
        elif before is None:
            self.say("nothing was changed here", "dim")
        else:
            self._send(before.rule if before.exists else None, _differing(self._required, before.required))

    def _drop_changes(self) -> None:
        self.form.changed.clear()
        self._check_changes = {}
        self._keep()
        self.paint()

    def _keep(self) -> None:
        """Store what was changed and not saved as a draft."""
        changes = {name: value for name, value in self.form.changed.items() if name != CHECKS}
        kept_checks = {CHECKS: self._check_changes} if self._check_changes else {}
        self._kept.put(self.pattern, changes | kept_checks)

    def do_check(self) -> None:
        if self._checks is None:
            self.say("the checks are not read yet; r asks again", "warn")
        else:
            choose_checks(
                self, self._checks, self.form.value(CHECKS) or (), "once S saves", self._take_choice
            )

    def _take_choice(self, changes: Mapping[str, bool]) -> None:
        """Change in the draft which checks are required. The rule asks for them if some were added."""
        self._check_changes |= changes
        if any(changes.values()) and not self.form.value("require_checks"):
            self.form.set("require_checks", True)
        self.paint()
        self._keep()

    def do_save(self) -> None:
        if self.form.faults():
            self.say("mend what is marked first; nothing was sent", "bad")
        elif self.form.changed or not self._exists:
            self._send(self._body(), dict(self._check_changes))
        else:
            self.say("nothing is changed", "dim")

    def _body(self) -> ProtectionSet:
        """Returns the rule as the form says it."""
        values = {name: value for name, value in self.form.values().items() if name != CHECKS}
        return replace(_body_of(self._rule), **values, require_review=bool(values[APPROVALS]))

    def _send(self, rule: ProtectionSet | None, checks: Mapping[str, bool], question: str = "") -> None:
        """Send the rule and which checks are required, as one change. `rule`: None removes it. If merges that
        are signed in advance land because of it, or if there is a `question`, ask first."""
        before = Asked(tuple(self._rules), tuple(self._required or ()))
        required = apply_changes(self._required or (), checks)
        after = before.with_rule(self.pattern, rule).with_checks(tuple(required))
        end = "U brings the rule back." if question else "Save it?"
        send = partial(self._queue, rule, checks, required)
        self._merges.confirm(before, after, send, question, end)

    def _queue(self, rule: ProtectionSet | None, checks: Mapping[str, bool], required: list[str]) -> None:
        repo, pattern = self.repo, self.pattern
        body = None if rule is None else _body_of(rule)
        is_other = body != (_body_of(self._rule) if self._exists else None)

        def put(sending: Sending) -> None:
            if is_other:
                endpoint = protection.CLEAR if body is None else protection.SET
                sending.put(endpoint, body, about=repo.full_name, id=repo.id, pattern=pattern)
            put_changes(sending, repo, checks)

        if body is None:
            done = f"the rule for {pattern} is removed"
        else:
            done = f"the rule for {pattern} is saved: {in_words(body, required)}"
        self.svc.outbox.queue(put, lambda: self._become(body, required), done)

    def _become(self, body: ProtectionSet | None, required: list[str]) -> None:
        """Called when a change is in the outbox. Shows the rule as it will be, and remembers what it was."""
        was = Known(self._exists, self._rule, self._required)
        rule = None if body is None else Protection(pattern=self.pattern, **asdict(body))
        if rule is None and was.exists:
            self._removed.remember(self.pattern, was.rule, self.svc.clock())
        elif rule is not None:
            self._removed.forget(self.pattern)
        self._before, self._rule, self._exists = was, rule or ProtectionSet(), rule is not None
        self._rules = [other for other in self._rules if other.pattern != self.pattern]
        self._rules += [rule] if rule is not None else []
        self._required = required if self._required is not None else None
        self._drop_changes()

    def do_clear(self) -> None:
        if not self._exists:
            self.say(f"there is no rule for {self.pattern} yet", "dim")
            return
        question = (
            f"Remove the rule for {self.pattern}? Whoever has the role write then pushes and merges "
            "without what it asks for."
        )
        if self.form.changed:
            question += " What is not saved here is dropped."
        self._send(None, {}, question)

    def _fault(self, name: str, value: Any) -> str:
        if name == APPROVALS and not isinstance(value, int):
            return f"{value} is not a number"
        return "" if name == CHECKS else fault_of(ProtectionSet, {name: value})


def with_draft(
    rule: ProtectionSet, draft: Mapping[str, Any], required: Sequence[str] | None
) -> tuple[ProtectionSet, Sequence[str] | None]:
    """Returns a rule as a draft changes it, and the required checks as the draft changes them. What is not
    valid in the draft leaves the rule as it is. `required`: None if they are not known yet."""
    values = {name: value for name, value in draft.items() if name != CHECKS}
    if fault_of(ProtectionSet, values):
        return rule, required
    changed = replace(_body_of(rule), **values)
    changed = replace(changed, require_review=bool(values.get(APPROVALS, approvals_of(rule))))
    return changed, required if required is None else apply_changes(required, draft.get(CHECKS, {}))


def name_of_drafts(repo_id: str) -> str:
    """Returns the name of the draft with the unsaved changes of the rules of a repository."""
    return f"{repo_id}-rules"


def apply_changes(required: Sequence[str], changes: Mapping[str, bool]) -> list[str]:
    """Returns the names of the required checks after some changes. `changes`: whether a check is required
    from then on, by name."""
    names = {name for name in required if changes.get(name, True)}
    return sorted(names | {name for name, is_on in changes.items() if is_on})


def _differing(now: Sequence[str] | None, before: Sequence[str] | None) -> dict[str, bool]:
    """Returns the changes that make the required checks again what they were. None: they were not read."""
    if now is None or before is None:
        return {}
    return {name: name in before for name in {*now, *before} if (name in before) != (name in now)}


def _body_of(rule: ProtectionSet) -> ProtectionSet:
    """Returns what a rule requires, without its pattern."""
    return ProtectionSet(**{name: getattr(rule, name) for name in ProtectionSet.__struct_fields__})


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
