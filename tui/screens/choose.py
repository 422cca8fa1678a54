"""Cards in which the user chooses an item from a list. Typed text filters the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.content import Content

from localstore.core.model.repo import Repo
from tui import reads
from tui.screens.base import READING_SECONDS
from tui.screens.card import MARGIN, Card
from tui.text import Part, brief, cut_middle, safe
from tui.widgets.lines import Item, Lines, heading, sequence
from tui.widgets.made import LazyRows
from tui.widgets.ranked import Ranked

FRAME_COLUMNS = 6  # of a card: its frame, the blanks inside it, and the mark of a row
VISIBILITY = 9  # columns of who may look at a repository


class Choose(Card):
    """A card with a list to choose from. It closes when an item is chosen, and then calls `chosen` with the
    key of that item. `now`: the key of the item on which the cursor begins."""

    LINES: type[Lines] = Ranked
    ENTER, SIGN = "choose", "type to filter"
    left: Callable[[], object] = staticmethod(lambda: None)  # called once esc has closed the card

    def __init__(
        self,
        what: str,
        items: Sequence[Item] | LazyRows[Any],
        chosen: Callable[[Any], None],
        now: Hashable | None = None,
    ) -> None:
        super().__init__()
        self._what, self._items, self._chosen, self._now = what, items, chosen, now

    def content(self) -> ComposeResult:
        yield self.LINES(empty="nothing to choose", unmatched="nothing here matches", id="choices")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {self._what}", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        items = self._items
        rows = items if isinstance(items, LazyRows) else sequence(items)
        lines = self.query_one("#choices", Lines)
        if len(items) or not lines.waiting:
            lines.show(rows, self._now)
        self.fit(len(items))
        self.open_prompt(self.do_filter)

    def do_filter(self, typed: str = "") -> None:
        lines = self.query_one("#choices", Lines)
        self.ask(
            self.SIGN,
            lambda text: self._choose(lines, text),
            lines.filter,
            typed,
            filtered=lines,
            space=self._marks(),
            enter=self.ENTER,
            label="/",
            space_label=self.space_label,
        )

    @property
    def space_label(self) -> str:
        """Returns the words for what the space key does, if it types nothing."""
        return "on or off"

    def _marks(self) -> Callable[[], None] | None:
        """Returns the function that is called when the user presses the space key. Returns None if a space is
        part of the typed text."""
        return None

    def _choose(self, lines: Lines, typed: str) -> None:
        lines.ready()
        if lines.key is not None:
            self._take(lines.key)
            return
        self.do_filter(typed)  # to be corrected
        self.say(f"nothing here has {typed}" if typed else "nothing to choose", "warn")

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self._take(event.key)

    def _take(self, key: Hashable) -> None:
        """Close the card and call `chosen` with the key of the chosen row, before the next key press is
        handled."""
        self.app.pop_screen()
        self._chosen(key)

    def prompt_left(self) -> None:
        self.do_back()

    def do_back(self) -> None:
        super().do_back()
        if self not in self.app.screen_stack:
            self.left()


class ChooseSeveral(Choose):
    """A card in which the space key marks and unmarks names, and enter applies the changes. `offered`: for
    each name the parts of its row. `on`: the names that are marked at first. They are listed even if they are
    not among `offered`. `apply`: called with the names that were added and the names that were removed.
    `other`: called with a typed text that no name contains; without it, the card says so. `unchanged`: enter
    calls `apply` also if no mark was changed."""

    ENTER = "apply"

    def __init__(
        self,
        what: str,
        offered: Mapping[str, Sequence[Part]],
        on: Sequence[str],
        apply: Callable[[list[str], list[str]], None],
        other: Callable[[str], None] | None = None,
        *,
        unchanged: bool = False,
    ) -> None:
        self._offered: dict[str, Sequence[Part]] = {name: ((safe(name), "text"),) for name in on}
        self._offered |= offered
        self._before, self._on, self._apply, self._other = tuple(on), set(on), apply, other
        self._unchanged = unchanged
        super().__init__(what, self._rows(), lambda key: None)

    def _rows(self) -> list[Item]:
        return [
            Item(
                name,
                (("☑ ", "good") if name in self._on else ("☐ ", "dim"), *parts),
                text=name,
                cuts_middle_of=1,
            )
            for name, parts in self._offered.items()
        ]

    def offer(self, offered: Mapping[str, Sequence[Part]]) -> None:
        """List these names in place of those before, because more is known about them. Marked ones stay. The
        cursor stays on its name, unless nothing was typed and moved yet."""
        if not self.has_widgets:
            return
        marked = {name: self._offered.get(name, ((safe(name), "text"),)) for name in self._before}
        self._offered = {**{name: parts for name, parts in marked.items() if name not in offered}, **offered}
        lines, rows = self.query_one("#choices", Lines), self._rows()
        is_untouched = not lines.cursor and not lines.filtered
        lines.show(sequence(rows), rows[0].key if rows and is_untouched else None)

    def _marks(self) -> Callable[[], None]:
        return self._toggle

    def _toggle(self) -> None:
        lines = self.query_one("#choices", Lines)
        lines.ready()
        if isinstance(lines.key, str):
            self._on ^= {lines.key}
            lines.show(sequence(self._rows()))

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        event.prevent_default()  # Textual would call that of `Choose` next
        self._toggle()

    def _choose(self, lines: Lines, typed: str) -> None:
        """Apply the marks. If the user has changed none, the row that matches the typed text is first marked,
        or unmarked if it was marked."""
        lines.ready()
        if typed.strip() and lines.key is None:
            if self._other is None:
                super()._choose(lines, typed)
            else:
                self.app.pop_screen()
                self._other(typed.strip())
            return
        if typed.strip() and self._on == set(self._before):
            self._toggle()
        below = self.below
        self.app.pop_screen()
        added = [name for name in self._offered if name in self._on and name not in self._before]
        removed = [name for name in self._before if name not in self._on]
        if added or removed or self._unchanged:
            self._apply(added, removed)
        else:
            below.say("nothing was changed; space marks what enter applies", "dim")


class ChooseRepo(Choose):
    """A card to choose a repository. It lists the user's own repositories and the repository of the linked
    folder first, by the time of their last push. Below them it lists the other repositories that the user may
    see."""

    WIDTH, SHARE = 100, 75
    SIGN = "type a part of OWNER/NAME"

    def __init__(self, chosen: Callable[[Repo], None]) -> None:
        super().__init__("go to a repository", (), chosen)
        self._own: list[Repo] = []
        self._others: list[Repo] = []
        self._named: dict[str, Repo] = {}  # what is listed, by id
        self._asking = False  # whether what is painted was known before
        self._answers = 0  # of the server, out of two
        self._entered: str | None = None  # what was entered before the list was there

    def content(self) -> ComposeResult:
        own = "there is no repository yet; esc, then :repo create NAME makes one"
        yield self.LINES(
            empty=own if self.svc.client.account else "none is public here; esc, then :login shows yours",
            unmatched="no repository that you may see is called like this",
            waiting="asking the server",
            id="choices",
        )

    def on_mount(self) -> None:
        # Textual calls that of `Choose` by itself; called here as well, it would open a second prompt.
        self._asking = True
        self.svc.load(self.svc.repos, self._paint_own, self._miss)
        self.svc.load(reads.visible_repos(), self._paint_others, self._miss)
        self._asking = False

    def on_resize(self) -> None:
        super().on_resize()
        if self._named:
            self._show_rows()

    def _paint_own(self, repos: list[Repo], at: float) -> None:
        self._own = repos
        self._paint()

    def _paint_others(self, repos: list[Repo], at: float) -> None:
        self._others = repos
        self._paint()

    def _paint(self) -> None:
        self._named = {repo.id: repo for repo in (*self._others, *self._own)}
        if self._named or self._answers or not self._asking:
            self._show_rows()
        if not self._asking:
            self._answer()

    def _show_rows(self) -> None:
        lines = self.query_one("#choices", Lines)
        own = {repo.id for repo in self._own}
        linked = self.svc.place.repo_id
        newest = sorted(self._named.values(), key=lambda repo: repo.updated_at, reverse=True)
        newest.sort(key=lambda repo: repo.id != linked)
        groups = (
            ("Yours" if self.svc.client.account else "Public", [repo for repo in newest if repo.id in own]),
            ("Others that you may see", [repo for repo in newest if repo.id not in own]),
        )
        rows: list[Item] = []
        width = min(self.WIDTH, self.app.size.width - 2 * MARGIN) - FRAME_COLUMNS
        room = min(max((cell_len(repo.full_name) for repo in newest), default=0), width // 2)
        for name, repos in groups:
            rows += [heading(name, len(repos)), *(self._row(repo, room) for repo in repos)] if repos else []
        self._items, self._now = rows, lines.key or (rows[1].key if rows else None)
        lines.show(sequence(rows), self._now)
        self.fit(len(rows))

    def _row(self, repo: Repo, room: int) -> Item:
        """Returns the row of a repository. `room`: the columns of its name."""
        name = set_cell_size(cut_middle(safe(repo.full_name), room), room)
        private = repo.visibility == "private"
        sign: Part = (f"  {repo.visibility:<{VISIBILITY}}", "warn" if private else "dim")
        archived: Part = ("archived  " if repo.archived else "", "warn")
        in_folder: Part = ("here  " if repo.id == self.svc.place.repo_id else "", "accent")
        about: Part = (safe(repo.description) or repo.kind, "dim")
        when: Part = (f" {brief(repo.updated_at, self.svc.clock())} ", "dim")
        return Item(repo.id, ((name, "text"), sign, in_folder, archived, about), (when,), repo.full_name)

    def _say_position(self) -> None:
        """Write into the frame where the cursor is among the repositories, also if all of them are
        visible."""
        if self.has_widgets and self.lines is not None:
            self.query_one("#card").border_subtitle = Content(self.lines.position)

    def _take(self, key: Hashable) -> None:
        super()._take(self._named[str(key)])

    def _miss(self, error: BaseException) -> None:
        self._answer()

    def _answer(self) -> None:
        """Called after each answer of the server. If the user has pressed enter already, choose the row that
        matches the typed text, as soon as there is one."""
        self._answers += 1
        lines, entered = self.query_one("#choices", Lines), self._entered
        if entered is not None and (lines.key is not None or self._answers >= 2):
            self._entered = None
            super()._choose(lines, entered)
            self.release_keys()

    def _choose(self, lines: Lines, typed: str) -> None:
        lines.ready()
        if lines.key is None and self._answers < 2:
            self._entered = typed
            self.hold_keys(READING_SECONDS)
            self.say("◐ asking the server", "dim")
        else:
            super()._choose(lines, typed)
