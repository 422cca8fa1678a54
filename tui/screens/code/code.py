"""The tab Code of a repository: the files at a seal as a tree, their texts with colours, blame, history, and
comparisons."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace
from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.timer import Timer

from localstore.agent.talk import PersonOnBranch
from localstore.core.model.history import Blame, BlameRange, Blob, Tree
from localstore.core.words import count, first_line
from localstore.record.since_seal import SinceSeal
from svc.console.table import size
from tui import contents
from tui.actions import Action
from tui.highlight import colour_text, plain
from tui.screens.base import READING_SECONDS, THREE_PANES, TWO_PANES
from tui.screens.code.begin_edit import EDIT, BeginEdit
from tui.screens.code.bytes_shown import rows_of_bytes
from tui.screens.code.clipboard import copy
from tui.screens.code.differing import DIFF_ACTIONS
from tui.screens.code.file_facts import FileFacts
from tui.screens.code.file_view import TextPlace
from tui.screens.code.folder_tree import FolderTree
from tui.screens.code.history import History
from tui.screens.code.live import HERE_EVERY
from tui.screens.code.pictured import Pictured
from tui.screens.code.replay import Replay
from tui.screens.code.words import SEARCH
from tui.screens.facts import Facts
from tui.screens.first_steps import first_seal
from tui.screens.split import REST
from tui.text import Part, fit, fold, safe
from tui.texts import Texts, is_markdown, item, linked_path
from tui.widgets.diff import Diff
from tui.widgets.frame import Line
from tui.widgets.framed import Pane, draw_frame
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.picture import Picture
from tui.widgets.source import SHORT, Source
from tui.wording import unread_words

if TYPE_CHECKING:
    from tui.screens.code.find_text import SealTexts
    from tui.screens.repo_page import RepoPage

OF_FILES = frozenset(
    {"find_file", "search_files", "blame", "history", "replay", "edit", "live"}
)  # not keys of a list of seals
OF_COMPARISON = frozenset(action.id for action in DIFF_ACTIONS) - {"split"}  # no keys of a plain file
OF_TEXT = ("open", "split", "blame", "history", "edit", "live", "back")  # keys that come first in a text
NEED_FILE = frozenset({"blame", "replay", "edit"})
IN_DIFF = {"split": "side by side", "next_hunk": "next hunk", "next_file": "next file"}  # keys named there
OF_NOTHING = frozenset({"live", "follow"})  # keys of a branch without a seal
STEPS = (Action("left", ("left",), "step back"), Action("right", ("right",), "next step"))  # of a replay
TREE_WIDTH = 34
UNMATCHED = "nothing matches; esc lists all; F searches in all files, t finds a path"
KEPT_TEXTS = 4 * 1024 * 1024  # characters that are kept for the next search
PREVIEWED = 256 * 1024  # bytes of a file that is previewed
PEOPLE_EVERY = 2.0  # seconds between two questions who is where

ASKING = "◐ asking the server"


class Code(History, BeginEdit, FolderTree, Replay, Pictured, FileFacts):
    OF_SEAL = True
    ACTIONS = (
        Action("find_file", ("t",), "find file", footer=True),
        Action("search_files", ("F",), "search in all files", footer=True),
        Action("blame", ("B",), "blame", "svc blame {path}", footer=True),
        Action("history", ("h",), "history", "svc log {path}", footer=True),
        Action("older", ("left_square_bracket",), "older seal or step"),
        Action("newer", ("right_square_bracket",), "newer seal or step"),
        Action("replay", ("p",), "replay", footer=True),
        EDIT,
        Action("live", ("L",), "live", "", "signed_in", True, "live.bootstrap"),
        Action("follow", ("f",), "follow", "", "signed_in", right="live.bootstrap"),
        Action("split", ("v",), "source of Markdown; old and new side by side"),
        *(action for action in DIFF_ACTIONS if action.id != "split"),
        Action("copy", ("y",), "copy path or line"),
        Action("unfold", ("l",), "unfold the folder, open the file"),
    )
    DEFAULT_CSS = """
    Code #tree_pane { width: 32; }
    Code #file_pane { width: 1fr; }
    Code #seal_pane { width: 1fr; }
    Code #seal_pane #about { padding: 0 1; }
    Code #people { width: 32; }
    Code #bar_pane { height: auto; }
    """

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self.path: str | None = None
        self._blob: Blob | None = None
        self._text: Sequence[tuple[Part, ...]] = ()
        self._blob_seal: str | None = None  # the seal of `_blob`, None if that is not of a seal
        self._blame: Blame | None = None
        self._blaming = False
        self._people: list[PersonOnBranch] = []
        self._moves: Timer | None = None  # until the cursor in the tree rests
        self._glimpsed = False  # whether the file is shown because the cursor rests on it
        self._headed = ("", "")  # title of the file's pane, and words beside it
        self._bright = ""  # the pane that has the focus, or had it last
        self._made_for = 0  # columns of the terminal that the page was made for
        self._searched: tuple[str, SealTexts | None] = ("", None)  # a seal, and its texts
        self._sought = ""  # what was searched for last in all files
        self._source = False  # whether Markdown is shown as it is written
        self._return_to: TextPlace | None = (
            None  # where the cursor goes back to in the text that is opened again
        )
        self._found_in = ""  # the file in which a search has found a line; it is shown as it is written
        self._left_page = (0, -1)  # a line of Markdown, and the row of its page that the cursor was on
        self._page_lines: Sequence[int] = ()  # the line of the text that each row of the page shows
        self.texts: Texts = Texts(self, self._repaint)

    def actions(self) -> tuple[Action, ...]:
        """Returns the actions of the tab. While a history is shown, the line of keys leaves out the actions
        that are about files."""
        if self.is_empty:
            return tuple(action for action in self.ACTIONS if action.id in OF_NOTHING)
        if self.replaying:
            return self._actions_of_replay()
        if self._mode == "file":
            turns = self.path is not None and is_markdown(self.path) and not self.live and not self._blaming
            actions = [action for action in self.ACTIONS if action.id not in OF_COMPARISON]
            actions.sort(
                key=lambda action: not turns or action.id != "split"
            )  # named where there is little room
            return tuple(
                replace(action, label="source of Markdown", footer=turns) if action.id == "split" else action
                for action in actions
            )
        in_diff = self.diff.has_focus
        return tuple(
            replace(action, footer=False)
            if action.id in OF_FILES
            else replace(action, footer=in_diff, label=IN_DIFF[action.id])
            if action.id in IN_DIFF
            else action
            for action in self.ACTIONS
        )

    def _actions_of_replay(self) -> tuple[Action, ...]:
        """Returns the actions of the tab during a replay. The line of keys says how to step through it."""
        steps = {"replay": self.replay_label, "older": "or ← step back", "newer": "or → next step"}
        own = [
            replace(action, label=steps.get(action.id, action.label), footer=action.id in steps)
            for action in self.ACTIONS
        ]
        order = [*steps]
        own.sort(key=lambda action: order.index(action.id) if action.id in steps else len(order))
        return *own, *STEPS

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Returns "" if the action can do nothing in the
        pane with the focus: in a text there is nothing to open, and some actions need a file."""
        lines, tree = self.of.lines, self.query_one("#tree", Lines)
        if self.replaying and action.id in ("open", "ref", "filter"):
            return ""
        if self.replaying and action.id == "back":
            return "end the replay"
        if action.id == "open" and self._mode == "file" and lines is self.query_one("#file", Lines):
            return "its seal" if self._blamed is not None else ""
        if action.id == "blame" and self._blaming and lines is not tree:
            return "end blame"
        if action.id in NEED_FILE and not self.replaying and not self._has_text(in_tree=lines is tree):
            return ""
        if action.id == "split" and self._mode == "file":
            if lines is tree:  # what is previewed beside it is not named in its keys
                return ""
            return "page" if self._shows_source else "source"
        if action.id == "replay" and lines is tree and not self.replaying:  # it is played in the text
            return ""
        if action.id == "live" and (self.live or self.edits):
            return "the seal" if self.live else "live edits"
        return SEARCH if action.id == "search_files" else action.label

    def order_hints(self, hints: list[tuple[Action, str]]) -> list[tuple[Action, str]]:
        """In a text, the keys that are about it come before those that lead elsewhere."""
        if self._mode != "file" or self.replaying or self.of.lines is not self.query_one("#file", Lines):
            return hints
        first = [id for id in OF_TEXT if id != "live" or self.edits or self.live]
        return sorted(hints, key=lambda hint: first.index(hint[0].id) if hint[0].id in first else len(first))

    def facts(self) -> dict[str, str]:
        """Returns the file that the keys are about: the one under the cursor of the tree, or else the open
        one."""
        tree = self.query_one("#tree", Lines)
        key = tree.key if tree.has_focus else None
        path = str(key[1]) if isinstance(key, tuple) and key[0] == "file" else self.path
        return {"path": path} if path is not None else {}

    def _has_text(self, *, in_tree: bool) -> bool:
        """Returns whether the file under the cursor of the tree, or else the open file, can be a text. A file
        that is not read yet can."""
        path = self.path
        if in_tree:
            key = self.query_one("#tree", Lines).key
            path = str(key[1]) if isinstance(key, tuple) and key[0] == "file" else None
        blob = self._blob
        return path is not None and (blob is None or blob.path != path or blob.encoding == "utf-8")

    def compose(self) -> ComposeResult:
        about = Lines(marked=False, id="about")
        about.can_focus = False
        with Horizontal(classes="row"):
            with Pane(id="tree_pane"):
                yield Lines(empty="no files", unmatched=UNMATCHED, waiting="asking the server", id="tree")
            with Pane(id="file_pane"):
                yield Line(id="file_title")
                yield Lines(marked=False, searches=True, id="file")
                yield Picture(id="picture")
            with Pane(id="seal_pane"):
                yield about
                yield Diff(id="diff")
            facts = Facts(marked=False, id="facts")
            facts.can_focus = facts.display = False
            yield facts
            yield Lines(id="people")
        with Pane(id="bar_pane"):
            yield Line(id="timeline")
            yield Line(id="bar")

    def on_mount(self) -> None:
        self.load_seal()
        self._arrange()
        self._look_around()
        self.set_interval(PEOPLE_EVERY, self._look_around)
        self.set_interval(HERE_EVERY, self._tell_here)

    @property
    def wide(self) -> bool:
        return self.app.size.width >= TWO_PANES

    def on_resize(self) -> None:
        self._arrange()
        width = self.app.size.width
        if self._is_page and self._mode == "file" and width != self._made_for:
            self._made_for = width
            self.call_after_refresh(self._repaint)  # its width is that of the pane

    def _arrange(self) -> None:
        """Show the panes that fit: the tree and the file, or only one of them. A history always takes the
        place of the tree."""
        opened = (self.path is not None and not self._glimpsed) or self._mode != "file" or self.is_empty
        shows_tree = self._mode == "file" and not self.is_empty
        self.query_one("#tree_pane").display = shows_tree and (self.wide or not opened)
        self.query_one("#file_pane").display = self.wide or opened
        self.place_seals()
        if self._mode != "file" or self.path is None:
            self.show_picture(None)
        self.query_one("#people").display = self.live and self.app.size.width >= THREE_PANES
        self.place_facts()
        self.query_one("#bar_pane").display = self.live or self.replaying
        self.query_one("#timeline").display = self.replaying
        self.query_one("#tree_pane").styles.width = TREE_WIDTH if self.wide else "1fr"
        self._frame()

    def _frame(self) -> None:
        """Draw the frames of the panes. The frame of the pane with the focus is brighter."""
        focused = next((pane.id for pane in self.query(Pane) if pane.has_focus_within), "")
        self._bright = focused or self._bright  # a prompt takes the focus from all of them
        for pane in self.query(Pane):
            if self.wide and (pane.id != "bar_pane" or self.replaying):
                draw_frame(pane, "accent" if pane.id == self._bright else "line")
            else:
                pane.styles.border = None
            if pane.id == "file_pane":
                padded = self.wide and self._mode == "file" and not self.replaying
                pane.styles.padding = (0, 1) if padded else 0
        people = self.query_one("#people", Lines)
        draw_frame(people, "line")
        indented = self._mode == "file" and not self.wide
        file = self.query_one("#file", Lines)
        file.styles.padding = (0, 0, 0, 1) if indented and not self.replaying else 0
        file.edges = (1, int(self.wide)) if self.replaying else (0, 0)
        self.query_one("#file_title").display = not self.wide
        self._say_where()

    def _say_where(self) -> None:
        """Write the titles of the panes and the positions of the cursors into the frames."""
        tree, file = self.query_one("#tree", Lines), self.query_one("#file", Lines)
        title, words = self._headed
        if (blamed := self._blamed) is not None:
            words = safe(first_line(blamed.message)) or "no message"
        if self.wide:
            self.query_one("#tree_pane", Pane).name_frame(
                safe(self.folder or self.of.repo.name), tree.position
            )
            named = f"{title} · {words}" if title and words else title
            self.query_one("#file_pane", Pane).name_frame(named, file.position)
        else:
            place = self._position_of(file) or words
            room = max(self.app.size.width // 2, self.app.size.width - cell_len(title) - 4)
            right = (*fit(((place, "dim"),), room), (" ", "dim"))
            self.query_one("#file_title", Line).put(((f" {title}", "title"),), right)

    def _position_of(self, file: Lines) -> str:
        """Returns the position of the cursor in a history or a text, for a terminal without room for frames.
        Returns "" if the pane of the file has something else to say."""
        if self._mode == "history":
            return file.position
        if self.replaying or self._blamed is not None or not isinstance(file.rows, Source):
            return ""
        lines = f"{file.position} lines" if len(file.rows) != 1 else "1 line"
        return ", ".join(filter(None, (self._unsealed_words, lines)))

    @property
    def _unsealed_words(self) -> str:
        """Says of the open text that it is not the sealed one, or not the newest. "" otherwise."""
        live = "live" if self.path in self.unsealed else ""
        return live or ("edits in no seal" if self.is_edited(self.path) else "")

    def _head(self, title: str, words: str) -> None:
        self._headed = title, words
        self._say_where()

    def on_descendant_focus(self) -> None:
        self._frame()
        self.of.show_keys()
        if self.query_one("#tree", Lines).has_focus:
            self._rest()  # a preview waits for the focus, which may come after the rows
        elif self.diff.has_focus:
            self.show_all_compared()

    def on_descendant_blur(self) -> None:
        self._frame()

    def _focus(self, name: str) -> None:
        self.screen.set_focus(self.query_one(f"#{name}", Lines))

    def open_tab(self) -> None:
        self._look_around()

    @property
    def is_empty(self) -> bool:
        """Whether the tab has nothing to show, because nothing is sealed on the branch yet."""
        return self.of.read and self.of.seal is None and not self.live

    @property
    def opens(self) -> bool:
        return not self.is_empty

    def load_seal(self) -> None:
        self.leave_replay()
        if self.live and self.of.ref_name != self._looked_ref:
            self.leave_live()
        self.edits = {}  # they are of the seal that was shown before
        self._look_around()
        self._arrange()
        if self.is_empty:
            self._show_first_steps()
            return
        self._load_folder(self._wanted_folder)
        if self.path is not None:
            self.open_file(self.path, glimpsed=self._glimpsed)
        elif self.shows_other_history:
            self._show_history()

    def _show_first_steps(self) -> None:
        """Show how to seal files here for the first time."""
        file = self.query_one("#file", Lines)
        rows = [(), *(((" ", "text"), *row) for row in first_seal(self.of.repo.full_name))]
        file.show(sequence([Item(None, row) for row in rows]))
        self._head(f"{safe(self.of.ref_name)} · no seal yet", "")

    def _look_around(self) -> None:
        """Find out which files other people are in, and which edits of the branch are in no seal. Does
        nothing unless this tab is in front."""
        machine, repo, ref = self.svc.machine, self.of.repo, self.of.ref_name
        place, origin = self.svc.place, self.svc.client.origin
        if machine is None or self.live or not self.display or not self.of.in_front:
            return  # whoever looks at the live state is told

        def work() -> None:
            since = machine.since_seal(place.folder, repo.id, ref) if place.folder is not None else None
            if since is None and (folder := machine.folder_on(repo.full_name, ref, origin)) is not None:
                since = machine.since_seal(folder, repo.id, ref)
            self.app.call_from_thread(self._see, ref, since)
            self.app.call_from_thread(self._met, machine.people(repo.full_name, ref))

        self.app.run_worker(work, thread=True, group="people", exclusive=True, exit_on_error=False)

    def _see(self, ref: str, since: SinceSeal | None) -> None:
        """Mark the files that the branch has edited since the shown seal."""
        if not self.is_attached or self.live or ref != self.of.ref_name:
            return
        edits = since.edits if since is not None and since.seal == self.of.seal else {}
        if edits != self.edits:
            self.edits = edits
            if self._tree is not None:
                self._paint_tree()
            blob = self._blob
            if self._mode == "file" and blob is not None and blob.encoding == "utf-8" and not self.replaying:
                self._count_lines()
            self.of.show_keys()

    def _met(self, people: list[PersonOnBranch]) -> None:
        if people != self._people and self.is_attached and not self.live:
            self._people = people
            if self._tree is not None:
                self._paint_tree()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        """Called when the cursor of a list has moved. If it is the cursor of the tree, a preview of the file
        under it follows."""
        self._say_where()
        if event.lines.id == "file":
            self.rest_on_seal()
        if event.lines.id != "tree":
            return
        if self._glimpsed:  # what a key does is not about the file that the cursor has left
            self.path, self._glimpsed = None, False
        self._rest()

    def _rests_no_more(self) -> None:
        """Cancel the preview that is due for the file under the cursor. A late answer would otherwise replace
        the file that the user has opened."""
        if self._moves is not None:
            self._moves.stop()
            self._moves = None

    def _rest(self) -> None:
        self._rests_no_more()
        self._moves = self.set_timer(REST, self._glimpse)

    def _glimpse(self) -> None:
        tree = self.query_one("#tree", Lines)
        key = tree.key
        quiet = self._mode == "file" and not self.live and not self.replaying and not self._blaming
        if not (self.wide and quiet and tree.has_focus and self.display and self.of.in_front):
            return
        if not isinstance(key, tuple) or key[1] == self.path:
            return
        if key[0] != "file":
            self._glimpse_folder(key)
        elif self._sizes.get(str(key[1]), PREVIEWED + 1) <= PREVIEWED:
            self.open_file(str(key[1]), glimpsed=True)
        else:
            self._show_large(str(key[1]))

    def show_no_file(self, path: str, *, is_folder: bool) -> None:
        self.path = self._blob = None
        self.show_picture(None)
        self.show_facts_of(path, is_folder=is_folder)

    def size_of(self, path: str) -> int | None:
        return self._sizes.get(path)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.stop()
        if event.lines.id == "tree":
            if not isinstance(event.key, tuple):
                return
            kind, path = event.key
            if kind == "file":
                self.of.stay_in_code()
                self.open_file(path)
                self._focus("file")
                self.tell_of_edits(path)
            elif kind == "dir":
                self._load_folder(path)
            else:
                self._load_folder(self.folder.rpartition("/")[0], ("dir", self.folder))
        elif event.lines.id == "people":
            self.follow(str(event.key))
        elif self._mode == "history":
            self.show_seal(str(self.query_one("#file", Lines).key))
        elif (blamed := self._blamed) is not None:
            self.show_seal(blamed.seal_id)

    def open_file(self, path: str, *, glimpsed: bool = False) -> None:
        """Show a file at the seal of the screen. `glimpsed`: the file is only a preview, because the cursor
        of the tree is on it."""
        repo, seal = self.of.repo, self.of.seal
        if seal is None:
            return
        if self._return_to is not None and self._return_to.path != path:
            self._return_to = None
        if path != self.path:
            self._blob = self._blame = None
            self.show_picture(None)
            file = self.query_one("#file", Lines)
            file.shift = 0
            file.clear_search()
            file.show(())
            file.waiting = ASKING
            self._head(safe(path), "")
        self.path, self._mode, self._playing, self._kept = path, "file", None, ""
        self._glimpsed, self._glimpsed_path = glimpsed, (path, False)
        self._rests_no_more()
        self._arrange()
        self._tell_here()
        if self.live_file(path):
            return

        def paint(blob: Blob, at: float) -> None:
            if seal == self.of.seal:
                self._paint_sealed(blob, at, seal)

        def not_shown(_: BaseException) -> None:
            if seal == self.of.seal:
                self._not_shown(path)

        self.svc.load(contents.file(repo.id, seal, path), paint, not_shown)
        if self._blaming:
            self._load_blame()

    def _not_shown(self, path: str) -> None:
        """Called when the request for the open file has failed. Says so in the pane of the file. The line of
        keys shows the reason."""
        file = self.query_one("#file", Lines)
        if path == self.path and file.waiting:
            file.waiting, file.is_unread = unread_words(self.svc.news.state), True
            place = self.svc.place
            if (
                place.folder is not None
                and place.repo_id == self.of.repo.id
                and (place.folder / path).is_file()
            ):
                file.waiting += f". The linked folder has the file: {safe(str(place.folder / path))}"
            file.refresh()

    def read_missing(self) -> None:
        file = self.query_one("#file", Lines)
        if file.waiting and file.waiting != ASKING and self.path is not None:
            self.open_file(self.path, glimpsed=self._glimpsed)
        self.place_facts()

    def _paint_sealed(self, blob: Blob, at: float, seal: str) -> None:
        """Paint the text of a file at a seal. Does nothing if the user has opened another file since it was
        requested, or if the file has unsealed changes."""
        if blob.path == self.path and self._mode == "file" and blob.path not in self.unsealed:
            self._paint_file(blob, at, seal)

    def _paint_file(self, blob: Blob, at: float, seal: str | None = None) -> None:
        self._blob, self._blob_seal = blob, seal
        self._show_content(blob, plain(blob.content or "") if blob.encoding == "utf-8" else [])
        self.of.show_keys()  # some are of texts only
        if blob.encoding == "utf-8" and blob.content:
            content = blob.content

            def work() -> None:
                lines = colour_text(content, blob.path)
                if lines is not None:
                    self.app.call_from_thread(self._show_text, lines, blob)

            self.app.run_worker(work, thread=True, group="highlight", exclusive=True, exit_on_error=False)

    def _show_text(self, lines: Sequence[tuple[Part, ...]], of: Blob | None = None) -> None:
        if (of is not None and of is not self._blob) or self._mode != "file" or not self.is_attached:
            return
        self._text = lines
        if self._playing is not None:
            return
        self._repaint()
        self.go_to_line()

    def _repaint(self) -> None:
        blame: Sequence[BlameRange] = ()
        if self._blaming and self._blame is not None and self.path not in self.unsealed:
            # One of both may be there before the other, when another seal is shown.
            blame = self._blame.ranges if self._blame.seal_id == self._blob_seal else ()
        if self._blob is not None and self._blob.encoding == "utf-8":
            file = self.query_one("#file", Lines)
            file.linked = self._is_page
            if self._is_page:
                width = max(20, file.size.width - 1)
                before = file.key
                page = self.texts.rows(self._blob.content or "", width, breaks=False)
                self._page_lines = self.texts.lines(self._blob.content or "", width, breaks=False)
                rows_of_page = [item(("page", place), row) for place, row in enumerate(page)]
                file.show(sequence(rows_of_page), self._row_of_page(before))
            else:
                digits = 8 if self.wide else SHORT
                rows = Source(self._text, blame, self.svc.clock(), self.live_marks(), digits=digits)
                file.show(rows, self._line_of_page(file.key))
            place = self._return_to
            if place is not None and place.path == self.path and file.show_at(place.key, place.offset):
                self._return_to = None
            self._count_lines()

    def _line_of_page(self, key: Hashable) -> int | None:
        """Returns the number of the line that a row of the page of Markdown shows. `key`: the key of the row.
        Returns None for the key of any other row."""
        if not isinstance(key, tuple) or key[0] != "page" or key[1] >= len(self._page_lines):
            return None
        line = self._page_lines[key[1]]
        self._left_page = line, key[1]
        return line

    def _row_of_page(self, key: Hashable) -> Hashable | None:
        """Returns the key of the row of the page of Markdown that shows a line of its source. `key`: the
        number of the line. Returns None for any other key."""
        if not isinstance(key, int) or not self._page_lines:
            return None
        line, row = self._left_page
        if key == line and row < len(self._page_lines) and self._page_lines[row] == line:
            return ("page", row)
        at = max(0, bisect_right(self._page_lines, key) - 1)
        return ("page", bisect_left(self._page_lines, self._page_lines[at]))

    def _count_lines(self) -> None:
        """Write into the title how many lines the open text has. A page of Markdown has rows of its own, and
        the position of the cursor counts these."""
        lines = "" if self._is_page else count(len(self._text), "line")
        self._title(", ".join(filter(None, (self._unsealed_words, lines))))

    @property
    def _is_page(self) -> bool:
        """Whether the open text is Markdown that is shown rendered, and not as its source."""
        raw = self._shows_source or self._blaming or self.live or self.replaying
        return self.path is not None and is_markdown(self.path) and not raw

    @property
    def _shows_source(self) -> bool:
        """Whether the open file is shown as it is written, if it is Markdown."""
        return self._source or (self._found_in != "" and self._found_in == self.path)

    def path_of(self, target: str) -> str | None:
        return linked_path(self.path or "", target)

    def here(self) -> Callable[[], None] | None:
        place, source = self.place_in_file(), self._source
        if place is None:
            return None

        def again() -> None:
            self._return_to, self._source = place, source
            self.reveal(place.path)
            self.open_file(place.path)
            self._focus("file")

        return again

    def do_split(self) -> None:
        """Switch between rendered Markdown and its source. In a comparison, switch between one column and
        two: old and new side by side."""
        if self.previews_seals:
            super().do_split()
        elif self._blaming and self._mode == "file":
            self.of.say("blame shows the source; B ends it", "warn")
        elif self._mode == "file" and self.path is not None and is_markdown(self.path):
            self._source, self._found_in = not self._shows_source, ""
            self.query_one("#file", Lines).shift = 0
            self._repaint()
            self.of.show_keys()
        else:
            self.of.say("v shows Markdown as it is written, and a comparison side by side", "warn")

    def _show_content(self, blob: Blob, text: Sequence[tuple[Part, ...]]) -> None:
        """Show the content of a file in the way that fits it. `text`: its lines, if it is a text."""
        self._text = text
        if self.show_picture(blob):
            self._title("picture")
        elif blob.content is None and blob.size:
            self._show_size(blob)
        elif blob.encoding == "utf-8":
            self._show_text(text)
        else:
            self._show_bytes(blob)

    def _show_size(self, blob: Blob) -> None:
        """Show the size of a file that is too large for an answer of the server."""
        row = f"{size(blob.size)} · too large to show; pull it, and any program opens it"
        self.query_one("#file", Lines).show([Item(None, ((row, "dim"),))])
        self._title(size(blob.size))

    def show_undrawn(self, blob: Blob, why: str) -> None:
        self._show_bytes(blob, why)

    def _show_bytes(self, blob: Blob, undrawn: str = "") -> None:
        """Show what a file is that is not a text. `undrawn`: why it is not drawn, if it is a picture."""
        place = self.svc.place
        folder = place.folder if place.repo_id == self.of.repo.id else None
        rows = rows_of_bytes(blob, self.of.repo.full_name, folder)
        if undrawn:
            why: Part = (f"✗ this picture cannot be drawn: {safe(undrawn)}", "bad")
            width = max(20, self.query_one("#file_pane").size.width - 4)
            rows = [*fold((why,), width), (), *rows]
        self.query_one("#file", Lines).show([Item(None, row) for row in rows])
        self._title("picture, not drawn" if undrawn else "binary")

    def _title(self, right: str) -> None:
        self._head(safe(self.path or ""), right)

    def do_blame(self) -> None:
        tree = self.query_one("#tree", Lines)
        if not self.wide and tree.has_focus and isinstance(tree.key, tuple) and tree.key[0] == "file":
            self._blaming = False
            self.open_file(str(tree.key[1]))
            self._focus("file")
        before = self.path
        self.take_previewed()
        self._blaming = self._blaming and self.path == before
        if self.path is None:
            self.of.say("open a file first: enter", "warn")
            return
        if self.path in self.unsealed:
            self.of.say("blame tells of sealed lines, and these are live: L shows the seal", "warn")
            return
        self._blaming = not self._blaming
        self.query_one("#file", Lines).shift = 0  # who changed a line stands at its left
        if self._blaming:
            self._load_blame()
        elif self._blob is not None:
            self._show_text(self._text)
            self.of.show_keys()

    @property
    def _blamed(self) -> BlameRange | None:
        """The lines around the cursor that one seal changed last, together with that seal. None if the blame
        is not shown."""
        file = self.query_one("#file", Lines)
        rows, number = file.rows, file.key
        return rows.find_blame(number) if isinstance(rows, Source) and isinstance(number, int) else None

    def _load_blame(self) -> None:
        repo, seal, path = self.of.repo, self.of.seal, self.path
        if seal is None or path is None:
            return

        def paint(blame: Blame, at: float) -> None:
            if blame.path != self.path or seal != self.of.seal:
                return
            self._blame = blame
            if self._blob is not None and self._blob_seal == seal:
                self._show_text(self._text)
                self.of.show_keys()

        self.svc.load(contents.blame(repo.id, seal, path), paint)

    def do_find_file(self) -> None:
        """Let the user choose a file among all files of the seal, and open it."""
        repo, seal = self.of.repo, self.of.seal
        if not self.of.read:
            self.of.once_read(self.do_find_file)
            return
        if seal is None:
            self.of.say("nothing is sealed yet", "warn")
            return
        chosen = self._find_file_in

        def paint(tree: Tree, at: float) -> None:
            if not painted:
                painted.append(True)
                chosen(tree)

        painted: list[bool] = []
        self.of.hold_keys(READING_SECONDS)
        self.svc.load(contents.tree(repo.id, seal, recursive=True), paint, lambda _: self.of.drop_keys())

    def do_search_files(self) -> None:
        """Let the user search in the texts of all files of the seal, and open the chosen line."""
        from tui.screens.code.find_text import FindText, Hit, read_texts

        repo, seal = self.of.repo, self.of.seal
        if not self.of.read:
            self.of.once_read(self.do_search_files)
            return
        if seal is None:
            self.of.say("nothing is sealed yet", "warn")
            return
        client = self.svc.client

        def keep(texts: SealTexts) -> None:
            if sum(len(file.text) for file in texts.files) <= KEPT_TEXTS:
                self._searched = seal, texts

        def chosen(hit: Hit) -> None:
            self._goto, self._found_in = hit.line, hit.path
            self._sought = card.sought
            self.go_to_file(hit.path)
            file = self.query_one("#file", Lines)
            file.filter(card.sought)
            file.reveal_found()  # if the text is there already
            self.of.say("n next match   N previous", "dim")

        def left() -> None:
            self._sought = card.sought
            self.of.return_to_origin()

        kept_texts = self._searched[1] if self._searched[0] == seal else None
        card = FindText(
            kept_texts,
            lambda goes_on: read_texts(client.api, repo, seal, goes_on),
            keep,
            chosen,
            self._sought,
        )
        card.left = left
        self.app.push_screen(card)

    def _find_file_in(self, tree: Tree) -> None:
        from tui.screens.code.find_file import FindFile

        if self.of.seal is not None:
            card = FindFile(self.of.repo.id, self.of.seal, tree, self.go_to_file)
            card.left = self.of.return_to_origin
            self.app.push_screen(card)

    def go_to_file(self, path: str) -> None:
        self.of.stay_in_code()
        self.reveal(path)
        self.open_file(path)
        self._focus("file")

    def tell(self, text: str) -> None:
        self.of.say(text, "dim")

    def do_copy(self) -> None:
        """Copy to the terminal's clipboard: the line under the cursor, if the cursor is in the text of a
        file, or the path of the open file."""
        lines = self.of.lines
        self.take_row()
        if self.path is None or lines is None or lines.item is None:
            return
        if lines.id == "file" and isinstance(lines.key, int) and lines.key <= len(self._text):
            text = "".join(part for part, _ in self._text[lines.key - 1])
        else:
            text = self.path
        copy(self.of, text)

    def do_left(self) -> None:
        if not self.by_hand(-1):
            super().do_left()

    def do_right(self) -> None:
        if not self.by_hand(1):
            super().do_right()

    def do_older(self) -> None:
        if not self.by_hand(-1):
            self.take_previewed()
            super().do_older()

    def do_newer(self) -> None:
        if not self.by_hand(1):
            self.take_previewed()
            super().do_newer()

    def back(self) -> bool:
        if self._followed is not None:
            self._stop_following()
            return True
        if self.leave_replay():
            return True
        if self.previews_seals and self.diff.has_focus:
            self._focus("file")
            return True
        if self._mode == "history":
            self._leave_history()
            return True
        if self.of.led_to(self.path):
            return False
        if self.path is not None and not self.wide:
            self.path = None
            self._arrange()
            self._focus("tree")
            return True
        if self.path is not None and self.screen.focused is self.query_one("#file"):
            self._focus("tree")
            return True
        if self.folder:
            self._load_folder(self.folder.rpartition("/")[0], ("dir", self.folder))
            return True
        if self.live:
            self.leave_live()
            return True
        return False

    def _leave_history(self) -> None:
        """Show the file again in place of a history, at the line that the cursor was on."""
        self._mode = "file"
        before, self._kept = self._kept, ""
        file = self.query_one("#file", Lines)
        file.shift = 0
        file.clear_search()
        self._arrange()
        if before and self.path is None:
            self.open_file(before, glimpsed=self._glimpsed)  # its line follows with its text
        elif self._blob is None:
            file.show(())
            self._head("", "")  # until the preview of the row under the cursor
        else:
            self._show_content(self._blob, self._text)
        has_tree = bool(self.query_one("#tree_pane").display)
        self._focus("tree" if has_tree and (self._from_tree or not self.path) else "file")
        self.of.return_to_origin()
        self.of.show_keys()  # the pane that has the focus is the same as before
