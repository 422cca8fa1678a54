"""Cards with actions to run. The help lists the keys of the screen below. The palette lists every action and
every command of svc."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence

from msgspec import structs
from rich.cells import cell_len
from textual.app import ComposeResult

from tui.actions import BRACES, EVERYWHERE, MOVES, Action, is_about_row, spell_key
from tui.commands import OF_A_REPO, ends_something
from tui.offers import OFFERS
from tui.screens.base import Base
from tui.screens.card import MARGIN, Card
from tui.text import Part, fit, safe
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.ranked import NAMED, Nearness, Ranked

LABEL, SHARE = 48, 45  # columns of what an action does, where commands begin, and hundredths of the row
EDGE = 5  # columns of a card's frame, of the blanks inside it, and of the mark of a row
ROW, SCREEN, EVERY, COMMANDS = "This row", "This screen", "Everywhere", "Every command of svc"
MOVING = "Moving"
GROUPS = (ROW, SCREEN, EVERY, COMMANDS, MOVING)
SAME = {  # words of commands and labels, and others for the same
    "create": "new add make",
    "new": "create add make",
    "delete": "remove",
    "remove": "delete",
    "rerun": "again",
    "pr": "proposal pull request",
    "proposals": "pr",
    "run": "workflow",
    "checks": "workflow",
    "view": "show open",
}
ALSO = {  # other names of what actions lead to, by their id
    "sync": "offline waiting outbox",
    "tab_4": "checks runs",
    "command diff": "compare comparison",
    "tab_8": "protect protection branch rules",
}
SEAL = 12  # characters of the id of a seal
_EVERYWHERE = frozenset(action.id for action in EVERYWHERE)
_MOVES = frozenset({*(action.id for action in MOVES), "next_match", "previous_match"})
_OFFERED = frozenset(action.id for action in OFFERS)


def group_of(action: Action) -> str:
    """Returns the heading under which the help lists an action, such as "This row" or "Everywhere"."""
    if action.id in _OFFERED or action.id.startswith("command "):
        return COMMANDS
    if is_about_row(action):
        return ROW
    if action.id in _MOVES:
        return MOVING
    return EVERY if action.id in _EVERYWHERE else SCREEN


class Help(Card):
    """A card with the keys of the screen below. Enter runs the action under the cursor. `refused`: returns
    the reason why an action is not allowed here."""

    def __init__(self, actions: Sequence[Action], where: str, refused: Callable[[Action], str]) -> None:
        super().__init__()
        self._table = {action.id: action for action in _join_keys(actions) if action.keys or self.all}
        self._where, self._refused = where, refused
        self._facts: dict[str, str] = {}
        self._wide = LABEL  # columns of what an action does, where commands begin

    WIDTH, SHARE = 120, 75
    all = False  # whether actions without a key are listed

    def content(self) -> ComposeResult:
        yield Ranked(unmatched="nothing is called like this", id="actions")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {'All actions' if self.all else 'Keys'}", "title"), (f"  {self._where}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self._facts = self._facts or self._facts_below()
        self._paint()

    def on_resize(self) -> None:
        self._paint()

    def _paint(self) -> None:
        rows = self.rows()
        lines = self.query_one("#actions", Ranked)
        lines.used = self.svc.used_actions
        lines.nearness = {action.id: self._nearness(action) for action in self._table.values()}
        lines.show(sequence(rows))
        self.fit(len(rows))

    def rows(self) -> list[Item]:
        """Returns the rows of all actions, in groups with a heading."""
        share = (min(self.WIDTH, self.app.size.width - 2 * MARGIN) - EDGE) * SHARE // 100
        longest = max((len(action.label) for action in self._table.values() if action.keys), default=0)
        self._wide = min(LABEL, max(share, longest))
        groups: dict[str, list[Item]] = {name: [] for name in GROUPS}
        for action in self._table.values():
            groups[group_of(action)].append(self._item(action))
        return [
            row
            for name, items in groups.items()
            if items
            for row in (Item(None, ((name, "heading"),)), *items)
        ]

    def _item(self, action: Action) -> Item:
        keys = " ".join(spell_key(key) for key in action.keys)
        # the title names the repository, and the row has no room for it
        why = self._refused(action).replace(f" in {self._facts.get('repo', '')}", "")
        command = self._command_of(action)
        beside: Part = (f"  {safe(why)}", "warn") if why else (f"  {safe(command)}", "dim")
        is_command = action.id in _OFFERED and action.label == action.command.removeprefix("svc ")
        label = "" if is_command else action.label
        summary = self.svc.summary(action.command.removeprefix("svc ")) if not label else ""
        right: tuple[Part, ...] = ((f" {keys}", "accent"),) if keys else ()
        name = fit(((safe(label or summary), "dim" if why else "text"),), self._wide)
        blank = " " * (self._wide - sum(cell_len(text) for text, _ in name))
        path = self.svc.path_of_command(action.command)
        others = f"{keys} {command or action.command}{_other_words(action)}"
        called = " ".join(filter(None, (label or summary, path, ALSO.get(action.id, ""))))
        return Item(action.id, (*name, (blank, "text"), beside), right, f"{called}{NAMED}{others}")

    def _nearness(self, action: Action) -> Nearness:
        """Returns how near an action is to where the user is: first those of the screen, then those
        everywhere, commands about what is shown, commands about the repository, and all others."""
        group, path = group_of(action), self.svc.path_of_command(action.command)
        first = path.partition(" ")[0]
        if group != COMMANDS:
            near = 0 if group in (ROW, SCREEN) else 1
        elif first in self._facts:
            near = 2
        else:
            near = 3 if first in OF_A_REPO and "repo" in self._facts else 4
        return near, ends_something(path)

    def _command_of(self, action: Action) -> str:
        """Returns the command that does what an action does, with the values that the screen shows. Returns
        "" if there is none, or if the screen does not show a value that it needs."""
        below: Base = self.below
        command = fill_braces(below.command_of(action) if action.keys else action.command, self._facts)
        path = self.svc.path_of_command(command)
        takes_repo = path.partition(" ")[0] in OF_A_REPO and "repo" in self._facts
        if not takes_repo or not action.keys or self._is_linked or self._facts["repo"] in command:
            return command
        return f"{command} -R {self._facts['repo']}"

    @property
    def _is_linked(self) -> bool:
        """Whether the repository on the screen is that of the linked folder, which commands are about by
        themselves."""
        repo = self.below.subject()[0]
        return repo is not None and repo.id == self.svc.place.repo_id

    def _facts_below(self) -> dict[str, str]:
        """Returns what the screen below shows, as values for the words in braces in commands, such as
        `{n}`."""
        repo, facts = self.below.subject()[0], self.below.facts()
        number = facts.get("issue") or facts.get("pr", "")
        full_name = repo.full_name if repo is not None else facts.get("repo", "")
        named = {"repo": full_name, "n": number}
        seal = (
            {"seal": facts["seal"][:SEAL]} if "seal" in facts else {}
        )  # a command finds it by its beginning
        return {name: value for name, value in {**facts, **named, **seal}.items() if value}

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self._run(event.key)

    def _run(self, key: object) -> None:
        """Close the card and run an action on the screen below, before the next key is handled. `key`: the id
        of the action."""
        if key is not None:
            used = self.svc.used_actions
            used[:] = [str(key), *(other for other in used if other != key)]
            self.app.pop_screen()
            self.app.call_later(self.svc.carry_out, self._table[str(key)])


def _join_keys(actions: Sequence[Action]) -> list[Action]:
    """Returns the actions, without those that do what another one is called. Its row has their keys too."""
    by_label: dict[str, Action] = {}
    for action in actions:
        name = action.label if action.keys else action.id
        other = by_label.setdefault(name, action)
        if other is not action:
            by_label[name] = structs.replace(other, keys=(*other.keys, *action.keys))
    return list(by_label.values())


def fill_braces(command: str, facts: Mapping[str, str]) -> str:
    """Returns a command line with the words in braces replaced by their values in `facts`, quoted as a shell
    reads them. Returns "" if a value is missing."""
    if any(name not in facts for name in BRACES.findall(command)):
        return ""
    return BRACES.sub(lambda match: shlex.quote(facts[match[1]]), command)


def _other_words(action: Action) -> str:
    """Returns other words that people type when they look for an action."""
    words = f"{action.label} {action.command}".split()
    return "".join(f" {others}" for word, others in SAME.items() if word in words)


class Palette(Help):
    """A card with all actions and all commands. The typed text filters them. If it is a command line that no
    row contains, enter runs it."""

    all = True

    def on_mount(self) -> None:
        super().on_mount()
        self.open_prompt(self.do_filter)

    def do_filter(self, typed: str = "") -> None:
        lines = self.query_one("#actions", Lines)

        def filter_rows(text: str) -> None:
            lines.unmatched = self._without_match(text)
            lines.filter(text)

        def done(text: str) -> None:
            if lines.key is not None:
                self._run(lines.key)
            elif self._is_command(text):
                self.app.pop_screen()
                self.app.call_later(self.svc.run_line, text)
            else:
                self.do_filter(text)  # to be corrected
                self.say("nothing was run", "warn")

        self.ask("type to filter", done, filter_rows, typed, filtered=lines, enter="run", label="/")

    def _is_command(self, line: str) -> bool:
        """Whether the line begins with a command of svc."""
        words = line.removeprefix("svc ").split()
        return any(self.svc.summary(" ".join(words[:count])) for count in range(1, 4))

    def _without_match(self, line: str) -> str:
        """Returns what the list says while no row matches the typed line."""
        if self._is_command(line):
            return f"enter runs: svc {safe(line.removeprefix('svc ').strip())}"
        return (
            "no action and no command of svc has all these words; fewer letters list more, esc leaves, "
            "and : takes a command line"
        )

    def prompt_left(self) -> None:
        self.do_back()
