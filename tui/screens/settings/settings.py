"""The tab Settings of a repository. It has a list of panels and, beside it, everything about the row
under the cursor. Enter changes that row."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, cast

from localstore.core.endpoint import Endpoint
from svc.flows.outbox.actions import API
from svc.flows.place.rights import refusal
from tui import contents
from tui.actions import Action
from tui.screens.settings import reads
from tui.screens.settings.absent import NO_ROUTE, Absent, Marketplace, Upstream
from tui.screens.settings.access import Access
from tui.screens.settings.automation import Automation
from tui.screens.settings.checks import BranchRules, Checks
from tui.screens.settings.form import FormDrafts
from tui.screens.settings.general import General
from tui.screens.settings.lifecycle import Lifecycle
from tui.screens.settings.listing import ListingPanel
from tui.screens.settings.meanings import meaning
from tui.screens.settings.panel import Panel
from tui.screens.split import PANE, SPLIT_ACTIONS, Split
from tui.text import Part, fold, safe
from tui.widgets.lines import Item, Lines, queued_rows, sequence

if TYPE_CHECKING:
    from localstore.core.model.repo import Repo
    from tui.markdown.words import Row
    from tui.reads import Read
    from tui.screens.repo_page import RepoPage

NARROW_SHARE, ROOMY = 60, 120  # hundredths of the width for the list below so many columns of a terminal
MARKS = ("  ", "* ", "⋯ ")  # before the label of a field
PANELS: tuple[type[Panel], ...] = (
    General,
    ListingPanel,
    Upstream,
    Marketplace,
    Access,
    Automation,
    Checks,
    BranchRules,
    Lifecycle,
)


class Settings(Split):
    LIST = "settings"
    SHARE = 52
    RULED = True
    BELOW = 3
    ACTIONS = (
        Action("open", ("enter",), "change", "svc repo edit", "signed_in", footer=True),
        Action("save", ("S",), "save", "svc repo edit", "signed_in", True, "repo.update"),
        Action("undo", ("U",), "take changes back", footer=True),
        Action(
            "add", ("a",), "invite", "svc repo collaborator add HANDLE", "signed_in", True, "invite.create"
        ),
        Action(
            "check",
            ("c",),
            "choose checks",
            "svc repo checks enable NAME",
            "signed_in",
            True,
            "check.enable",
        ),
        Action("next_panel", ("right_curly_bracket",), "next panel", footer=True),
        Action("previous_panel", ("left_curly_bracket",), "previous panel", footer=True),
        PANE,
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self.panels = {kind.NAME: kind(self) for kind in PANELS}
        self._kept = FormDrafts()
        self.rule_wanted = "", False  # a branch or pattern for `begin_rule`, and whether it has a rule
        self._unread = ""  # why some panels could not be read, "" if all were
        self._cursor: Hashable | None = None  # the row to which the cursor goes once it is there

    @property
    def repo(self) -> Repo:
        return self.of.repo

    @property
    def _share(self) -> int:
        """The hundredths of the width that the list takes. A terminal of few columns would cut its values."""
        is_narrow = self.app.size.width < ROOMY
        return self.svc.shares.get(self.LIST, NARROW_SHARE) if is_narrow else super()._share

    def make_title(self) -> tuple[Part, ...]:
        return (("Settings", "title"),)

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Actions of one panel have one only in that
        panel. Saving and undoing have one only if something is changed."""
        key = self.listed.key
        panel, kind, name = key if isinstance(key, tuple) else ("", "", "")
        if action.id == "open":
            refused = bool(panel and self._refusal(panel, kind))
            return self.panels[panel].verb(kind, name) if panel and not refused else ""
        if action.id == "undo" and self._removed_rule is not None:
            return "bring it back"
        if action.id in ("save", "undo"):
            changed = any(panel.form is not None and panel.form.changed for panel in self.panels.values())
            return action.label if changed else ""
        if action.id == "pane":
            return self.pane_label()
        if action.id in ("next_panel", "previous_panel"):
            return action.label if self._beside(1 if action.id == "next_panel" else -1) is not None else ""
        owner = {"add": Access.NAME, "check": Checks.NAME}.get(action.id, panel)
        return action.label if owner == panel else ""

    def command_of(self, action: Action) -> str:
        """Returns the command that does what an action does now. What is changed and saved has several
        commands, so none is shown."""
        return "" if action.id in ("open", "save") else action.command

    def preview_of(self, key: Hashable) -> None:
        """Show everything about the row with this key: its value, its explanation, and whether the account
        may change it."""
        item = self.listed.item
        if not isinstance(key, tuple) or item is None:
            return
        panel, kind, name = key
        label, *value = item.left[1:] if item.left[0][0] in MARKS else item.left
        width, words = self.preview_width, meaning(panel, kind, name)
        details = [part for row in self.panels[panel].details(kind, name) for part in fold(row, width)]
        why = self._refusal(panel, kind)
        if self.explains_below:
            refused = fold([(f"✗ {safe(why)}", "warn")], width) if why else []
            explained = details if panel == BranchRules.NAME and details else fold([(words, "text")], width)
            self.show_preview(key, f"{safe(panel)} · {label[0].strip()}", [*refused, *explained])
            return
        rows: list[Row | tuple[Part, ...]] = [((safe(panel), "dim"),)]
        rows += fold([(label[0].strip(), "title")], width)
        rows += fold([(text, role if role != "dim" else "text") for text, role in value], width)
        rows += [(("", "text"),), *fold([(words, "text")], width)] if words else []
        rows += [(("", "text"),), *details] if details else []
        does: list[Part] = [("enter ", "accent"), (self.panels[panel].verb(kind, name), "dim")]
        rows += [(("", "text"),), *fold([(f"✗ {safe(why)}", "warn")] if why else does, width)]
        self.show_preview(key, label[0].strip(), rows)

    def _refusal(self, panel: str, kind: str) -> str:
        """Returns a sentence that says why the account may not change a row. Returns "" if it may."""
        operation = self.panels[panel].RIGHTS.get(kind, "")
        return refusal(operation, self.repo) if operation else ""

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = FormDrafts(self.svc.drafts, f"{self.repo.id}-settings")
        for name, panel in self.panels.items():
            if panel.form is not None:
                panel.form.changed = self._kept.of(name)

    def open_tab(self) -> None:
        self.paint()
        self.do_refresh()

    def do_refresh(self) -> None:
        for panel in self.panels.values():
            panel.load()

    def queue_changed(self) -> None:
        self.paint()

    def say_unread(self, text: str) -> None:
        self._unread = text
        self.paint()

    def _unread_panels(self) -> set[str]:
        """Returns the names of the panels whose values were never read on this machine."""
        repo_id = self.repo.id
        requests: dict[str, tuple[str, Read[Any]]] = {
            Access.NAME: ("collaborator.list", contents.collaborators(repo_id)),
            Automation.NAME: ("webhook.list", reads.webhooks(repo_id)),
            Checks.NAME: ("", contents.checks(repo_id)),
            BranchRules.NAME: ("", contents.protections(repo_id)),
        }
        return {
            name
            for name, (operation, read) in requests.items()
            if not (operation and refusal(operation, self.repo)) and self.svc.client.read_cached(read) is None
        }

    def paint(self) -> None:
        if not self.is_mounted:
            return
        rows: list[Item] = []
        unread = self._unread_panels() if self._unread else set()
        self._unread = self._unread if unread else ""
        for name, panel in self.panels.items():
            if isinstance(panel, Absent):
                continue
            if rows and self.previews:  # which has the room
                rows.append(Item(None, (("", "text"),)))
            rows.append(
                Item(None, ((f"{name} ", "title"), ("never read here" if name in unread else "", "warn")))
            )
            rows += panel.rows()
        absent = ", ".join(name for name, panel in self.panels.items() if isinstance(panel, Absent))
        rows += [Item(None, (("", "text"),)), Item(None, ((f"{absent}: {NO_ROUTE}", "dim"),))]
        rows += queued_rows(self.svc.outbox.describe(f"/repos/{self.repo.id}"))
        there = self._cursor is not None and any(row.key == self._cursor for row in rows)
        self.query_one("#settings", Lines).show(sequence(rows), self._cursor if there else None)
        self._cursor = None if there else self._cursor
        self.renew()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        super().on_lines_moved(event)
        self._cursor = None  # the user has gone elsewhere

    def go(self, key: tuple[str, str, str]) -> None:
        """Put the cursor on the row with this key."""
        self.listed.go_to(key)

    def begin_rule(self) -> None:
        """Put the cursor on the protection rule that was asked for. If there is none, let the user make
        one."""
        pattern, exists = self.rule_wanted
        self._cursor = (BranchRules.NAME, "rule", pattern) if exists else (BranchRules.NAME, "protect", "")
        self.paint()
        if pattern and not exists and not refusal(BranchRules.RIGHTS["protect"], self.repo):
            cast("BranchRules", self.panels[BranchRules.NAME]).protect(pattern)

    def queued_values(self, endpoint: Endpoint[Any]) -> dict[str, Any]:
        """Returns the values that fields of the repository will get from changes in the outbox, by the name
        of the field. `endpoint`: only changes that use this endpoint count."""
        path = endpoint.target(id=self.repo.id).removeprefix(API)
        queued: dict[str, Any] = {}
        for entry in self.svc.outbox.entries:
            if entry.path == path and entry.state != "refused" and isinstance(entry.value, dict):
                queued |= entry.value
        return queued

    # --- changes

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, tuple):
            return
        name, kind, what = event.key
        panel = self.panels[name]
        why = self._refusal(name, kind)
        if why:
            self.of.say(why, "warn")
        else:
            panel.chosen(kind, what)

    def keep(self, panel: Panel) -> None:
        """Store the changes of a panel's form as a draft."""
        if panel.form is not None:
            self._kept.put(panel.NAME, panel.form.changed)

    def drop_queued(self, panel: Panel, changes: dict[str, Any]) -> None:
        """Called when changes of a form were put into the outbox. Removes them from the form and from its
        draft."""
        if panel.form is not None:
            for name, value in changes.items():
                if panel.form.changed.get(name) == value:
                    del panel.form.changed[name]
            self.keep(panel)
        self.paint()

    def do_save(self) -> None:
        """Send the changes of all forms."""
        forms = [panel for panel in self.panels.values() if panel.form is not None and panel.form.changed]
        if not forms:
            self.of.say("nothing is changed", "dim")
            return
        if any(panel.form is not None and panel.form.faults() for panel in forms):
            self.of.say("mend what is marked ✗ first; nothing was sent", "bad")
            return
        for panel in forms:
            panel.save_form()

    @property
    def _removed_rule(self) -> str | None:
        """The pattern of the row under the cursor, if it is a rule that was removed. None on other rows."""
        key, rules = self.listed.key, cast("BranchRules", self.panels[BranchRules.NAME])
        is_rule = isinstance(key, tuple) and key[:2] == (BranchRules.NAME, "rule")
        return key[2] if isinstance(key, tuple) and is_rule and rules.is_removed(key[2]) else None

    def do_undo(self) -> None:
        """Take back what was changed and not saved. On a rule that was removed, bring it back."""
        removed = self._removed_rule
        if removed is not None:
            cast("BranchRules", self.panels[BranchRules.NAME]).bring_back(removed)
            return
        for panel in self.panels.values():
            if panel.form is not None and panel.form.changed:
                panel.form.changed.clear()
                self.keep(panel)
        self.paint()

    def do_add(self) -> None:
        cast("Access", self.panels[Access.NAME]).invite()

    def do_check(self) -> None:
        cast("Checks", self.panels[Checks.NAME]).ask_for_check()

    def do_next_panel(self) -> None:
        self._jump(1)

    def do_previous_panel(self) -> None:
        self._jump(-1)

    def _jump(self, step: int) -> None:
        """Move the cursor to the first row of the next panel, or with `step` −1 of the previous one."""
        index = self._beside(step)
        if index is not None:
            self.listed.go(index)

    def _beside(self, step: int) -> int | None:
        """Returns the index of the first row of the next panel, or with `step` −1 of the previous one. Panels
        without rows to choose are skipped. Returns None if there is no such panel."""
        lines = self.listed
        firsts: dict[str, int] = {}
        for index in range(len(lines.rows)):
            key = lines.rows[index].key
            if isinstance(key, tuple):
                firsts.setdefault(key[0], index)
        current = list(firsts).index(lines.key[0]) if isinstance(lines.key, tuple) else 0
        target = current + step
        return list(firsts.values())[target] if 0 <= target < len(firsts) else None
