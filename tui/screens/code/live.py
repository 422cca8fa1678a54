"""The live state of a branch in the tab Code: unsealed changes, the people on the branch, and following one
of them.

Changes arrive from the agent as they happen (`tui.listening.looking`). When a text has changed, it is
requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from localstore.agent.talk import BranchEvent, PersonOnBranch, Unsealed
from localstore.core.errors import SvcError
from localstore.core.model.history import Blob
from localstore.record.since_seal import Change
from svc.flows.history.live_text import live_text
from tui.actions import MOVES, find_key
from tui.client import sentence
from tui.listening.looking import Looking
from tui.screens.code.file_view import FileView
from tui.text import Part, safe
from tui.widgets.frame import LIGHTS, Line
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.screens.repo_page import RepoPage

HERE_EVERY = 20.0  # seconds after which others are told again where the user looks
STOPS = frozenset({*(action.id for action in MOVES), "find_file", "older", "newer", "replay", "history"})


def who_is_in(people: Sequence[PersonOnBranch], path: str) -> tuple[Part, ...]:
    """Returns parts that name the people who are in the file `path`, with their lines. If `path` is a folder,
    they name the people in the files below it."""
    marks: list[Part] = []
    for person in people:
        if person.path == path or person.path.startswith(f"{path}/"):
            line = f":{person.line}" if person.line and person.path == path else ""
            marks.append((f"◂ @{safe(person.who)}{line} ", _role(person)))
    return tuple(marks)


def _role(person: PersonOnBranch) -> str:
    return "agent" if person.kind == "agent" else "accent"


def name_of(person: PersonOnBranch) -> str:
    """Returns a person on a branch as `@HANDLE`. If it is a program that works for the person, `(agent)`
    follows."""
    return f"@{safe(person.who)}{' (agent)' if person.kind == 'agent' else ''}"


class Live(FileView):
    """The live state of a branch in the tab Code. `live`: the tab shows the live state now, and not a
    seal."""

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._looking: Looking | None = None
        self._looked_ref = ""
        self._light = LIGHTS["unknown"]
        self.unsealed: dict[str, Unsealed] = {}
        self.edits: Mapping[str, Change] = {}  # paths that the branch has in no seal, while the seal is shown
        self._followed: PersonOnBranch | None = None
        self._wants_to_follow = False
        self._asked = self._painted = 0  # numbers of the last live text that was asked for, and painted
        self._goto = 0  # line that the cursor goes to once the text is there

    @property
    def live(self) -> bool:
        return self._looking is not None

    def do_live(self) -> None:
        """Show the live state of the branch. If it is shown already, show the seal again."""
        if self._looking is not None:
            self.leave_live()
            return
        machine, origin, name = self.svc.machine, self.svc.client.origin, self.of.ref_name
        if machine is None or not self.svc.outbox.signed_in:
            self.of.say("sign in for this with :login", "warn")
        elif any(ref.name == name and ref.type != "branch" for ref in self.of.refs):
            self.of.say(f"{name} is a tag; live is the state of a branch: b", "warn")
        else:
            self._looked_ref = name
            self._looking = looking = machine.look(
                origin, self.of.repo.id, name, lambda seen: self.svc.later(lambda: self._saw(looking, seen))
            )
            self._arrange()
            self._paint_live()
            self._tell_here()

    def leave_live(self) -> None:
        """Show the seal again in place of the live state."""
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.close()
        self.unsealed, self._people, self._followed = {}, [], None
        self._light, self._wants_to_follow = LIGHTS["unknown"], False
        if self.is_attached:
            self._arrange()
            self._load_folder(self.folder)
            if self.path is not None and self._mode == "file":
                self.open_file(self.path)

    def on_unmount(self) -> None:
        if self._looking is not None:
            self._looking.close()

    def _saw(self, looking: Looking, seen: BranchEvent) -> None:
        if looking is not self._looking or not self.is_attached:
            return
        match seen.event:
            case "light":
                self._light = LIGHTS.get(seen.state, LIGHTS["unknown"])
            case "frontier":
                self.unsealed = {change.path: change for change in seen.paths}
                if seen.head != self.of.seal:
                    self.of.go_to(self._looked_ref, seen.head)
                else:
                    self._load_folder(self.folder)
                    self._changed_now()
            case "changed":
                self.unsealed.update((change.path, change) for change in seen.paths)
                for path in seen.same:
                    self.unsealed.pop(path, None)
                self._paint_tree()
                if self.path in {*(change.path for change in seen.paths), *seen.same}:
                    self._changed_now()
            case "people":
                self._meet(seen.people)
            case "ended":
                self.leave_live()
                self.of.say(seen.detail or "the live state cannot be seen", "warn")
        self._paint_live()

    def _changed_now(self) -> None:
        if self.path is not None and self._mode == "file":
            self.open_file(self.path)

    def _meet(self, people: list[PersonOnBranch]) -> None:
        self._people = people
        self._paint_tree()
        if self._mode == "file" and self.path is not None:
            self._repaint()
        if self._wants_to_follow and people:
            self._wants_to_follow = False
            self._choose_whom()
        if self._followed is not None:
            self._go_along()

    # --- texts

    def live_file(self, path: str) -> bool:
        """Show the live text of a file. Returns False if the file has no unsealed changes."""
        change = self.unsealed.get(path)
        if change is None:
            return False
        repo_id, ref, api = self.of.repo.id, self._looked_ref, self.svc.client.api
        if change.kind != "text":
            what = "removed" if change.kind == "gone" else f"{change.size:,} bytes, not text"
            self._title(f"live, {'removed' if change.kind == 'gone' else 'binary'}")
            by = f" by {', '.join(f'@{name}' for name in change.by)}" if change.by else ""
            self.query_one("#file", Lines).show([Item(1, ((f"{what}{safe(by)}; not sealed", "dim"),))])
            return True
        self._asked = number = self._asked + 1

        def work() -> None:
            try:
                text = live_text(api, repo_id, ref, path, change.gen).decode()
            except SvcError as error:
                self.app.call_from_thread(self._not_read, path, sentence(error))
                return
            blob = Blob(path, "text", change.digest, len(text.encode()), "utf-8", text, False)
            self.app.call_from_thread(self._read, number, blob)

        self.app.run_worker(work, thread=True, group="live text", exclusive=True, exit_on_error=False)
        return True

    def _read(self, number: int, blob: Blob) -> None:
        if number < self._painted or blob.path not in self.unsealed:
            return  # what was asked for later is painted, or the text is as sealed again
        self._painted = number
        if self.is_attached and self.live and blob.path == self.path and self._mode == "file":
            self._paint_file(blob, 0.0)

    def _not_read(self, path: str, why: str) -> None:
        if self.is_attached and path == self.path:
            self.of.say(why, "warn")

    # --- what is painted

    def live_marks(self) -> dict[int, tuple[Part, ...]]:
        """Returns parts that name the people in the open file, by the number of the line that they are in."""
        marks: dict[int, tuple[Part, ...]] = {}
        for person in self._people:
            if self.live and person.path == self.path and person.line:
                marks[person.line] = (*marks.get(person.line, ()), (f"◂ {name_of(person)} ", _role(person)))
        return marks

    def live_entry(self, path: str) -> tuple[Part, ...]:
        """Returns the note that the tree shows beside a file or folder that differs from the seal, as parts.
        Returns () if it does not differ."""
        if not self.live:
            differs = path in self.edits or any(edited.startswith(f"{path}/") for edited in self.edits)
            return (("~ not sealed ", "warn"),) if differs else ()
        change = self.unsealed.get(path)
        if change is not None:
            present = {safe(person.who) for person in self._people if person.path == path}  # they follow
            names = [name for name in map(safe, change.by) if name not in present]
            by = "".join(f"@{name} " for name in names[:2])
            sign = (
                ("− removed ", "bad") if change.kind == "gone" else ("+ new ", "good") if change.new else None
            )
            return (sign or ("~ live ", "warn"), (by, "dim"))
        below = f"{path}/"
        return (("~ live ", "warn"),) if any(name.startswith(below) for name in self.unsealed) else ()

    def is_edited(self, path: str | None) -> bool:
        """Whether the shown seal has an older version of a file than the branch."""
        return not self.live and path in self.edits

    def tell_of_edits(self, path: str) -> None:
        """If the branch has edits of a file that are in no seal, say so, which key shows them, and what seals
        them."""
        if self.is_edited(path):
            key = find_key("live", self.svc.actions())
            shows = f"{key} shows them, " if key else ""
            self.of.say(
                f"the branch has edits of it in no seal: {shows}svc push -m MESSAGE seals them", "warn"
            )

    def live_entries(self, folder: str) -> dict[str, str]:
        """Returns the new entries of a folder, as `path: kind` with the kind "file" or "dir". New are the
        files that the seal lacks, and the folders that contain such files."""
        prefix = f"{folder}/" if folder else ""
        entries: dict[str, str] = {}
        for path, change in self.unsealed.items():
            if change.new and path.startswith(prefix):
                name, slash, _ = path[len(prefix) :].partition("/")
                entries[prefix + name] = "dir" if slash else "file"
        return entries

    def _paint_live(self) -> None:
        """Paint the line about the live state, and the list of people."""
        if not self.is_attached or not self.live:
            return
        following = self._followed
        count = len(self.unsealed)
        parts: list[Part] = [(" ", "text"), *self._light, (f"  {count} not sealed  ", "dim")]
        if following is not None:
            parts.append((f"following {name_of(following)}, f or esc stops  ", "title"))
        for person in self._people:
            where = f" {safe(person.path)}{f':{person.line}' if person.line else ''}" if person.path else ""
            parts += [(name_of(person), _role(person)), (f"{where}  ", "dim")]
        if not self._people:
            parts.append(("nobody else is here", "dim"))
        self.query_one("#bar", Line).put(parts)
        rows = [heading("People", len(self._people))]
        for person in self._people:
            line = f":{person.line}" if person.line else ""
            rows.append(
                Item(person.conn, ((f"{name_of(person)} ", _role(person)), (safe(person.device), "dim")))
            )
            rows.append(Item(None, ((f"  {safe(person.path)}{line}" if person.path else "  here", "dim"),)))
        self.query_one("#people", Lines).show(sequence(rows))

    # --- following

    def do_follow(self) -> None:
        """Let the user choose somebody on the branch. From then on, the app shows the file and line where
        that person is. If the user follows somebody already, end that instead."""
        if self._followed is not None:
            self._stop_following()
        elif not self.live:
            self._wants_to_follow = True
            self.do_live()
        elif not self._people:
            self.of.say("nobody else is on this branch", "warn")
        else:
            self._choose_whom()

    def _choose_whom(self) -> None:
        from tui.screens.choose import Choose

        items = []
        for person in self._people:
            where = f"{safe(person.path)}{f':{person.line}' if person.line else ''}"
            items.append(
                Item(
                    person.conn,
                    ((f"{name_of(person)} ", _role(person)), (safe(person.device), "dim")),
                    ((f"{where} ", "dim"),),
                )
            )
        if len(items) == 1:
            self.follow(str(items[0].key))
        else:
            self.app.push_screen(Choose("follow", items, self.follow))

    def follow(self, conn: str) -> None:
        """Follow a person or a program on the branch: open their file and line, and do so again whenever they
        move. `conn`: the id of their connection."""
        self._followed = next((person for person in self._people if person.conn == conn), None)
        if self._followed is not None:
            self._go_along()
        self._paint_live()

    def _stop_following(self) -> None:
        self._followed, self._goto = None, 0
        self._paint_live()

    def _go_along(self) -> None:
        """Open the file and line in which the followed person is now."""
        before = self._followed
        now = next(
            (person for person in self._people if before is not None and person.conn == before.conn), None
        )
        if now is None:
            if before is not None:
                self.of.say(f"{name_of(before)} went", "warn")
            self._stop_following()
            return
        self._followed = now
        if not now.path:
            return
        self._goto = now.line
        if now.path != self.path or self._mode != "file":
            self.reveal(now.path)
            self.open_file(now.path)
            self._focus("file")
        else:
            self.go_to_line()

    def go_to_line(self) -> None:
        """Put the cursor on the line that the user asked for, or that the followed person is in. Does nothing
        until the text has that line."""
        lines = self.query_one("#file", Lines)
        if self._goto and len(lines.rows) >= self._goto:
            line, self._goto = self._goto, 0
            lines.go_within(line - 1)
            lines.reveal_found()

    def acting(self, action: str) -> None:
        """Called before an action runs. If the user follows somebody and the action moves the user elsewhere,
        end the following."""
        if self._followed is not None and action in STOPS:
            self._stop_following()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._tell_here()

    def _tell_here(self) -> None:
        """Show others which file and line the user looks at. Does nothing while the user follows somebody."""
        if self._looking is not None and self._followed is None and self.path is not None:
            key = self.query_one("#file", Lines).key
            self._looking.here(self.path, key if isinstance(key, int) else 0)
