"""A card to search in the texts of all files of a seal. The lines that contain the typed text are listed. If
there is room, the file around the line under the cursor is shown beside the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from rich.cells import cell_len

from localstore.core.errors import SvcError
from localstore.core.model.repo import Repo
from localstore.core.words import count
from svc.api import Api
from svc.flows.search.lines import lines_with
from tui.client import sentence
from tui.screens.base import READING_SECONDS
from tui.screens.choose_beside import ChooseBeside
from tui.text import CUT, Part, safe, skip
from tui.widgets.lines import Item, Lines, found_columns, mark_found
from tui.widgets.made import LazyRows

LARGEST = 256 * 1024  # bytes of a file in which is searched
MOST = 16 * 1024 * 1024  # characters that are searched
HITS = 1000  # lines that are listed
TOP = 60  # lines of the preview
PATH, GUTTER = 32, 5  # columns of a path, and of a line number


class FileText(NamedTuple):
    """A file and its text. `folded`: the case-folded text, in which is searched."""

    path: str
    text: str
    folded: str


class Hit(NamedTuple):
    """A line that contains what is searched for."""

    path: str
    line: int
    text: str


class SealTexts(NamedTuple):
    """The texts of a seal in which is searched. `is_whole`: whether there were not more than MOST. `large`:
    how many files are left out because they are larger than LARGEST."""

    files: Sequence[FileText]
    is_whole: bool
    large: int


def read_texts(api: Api, repo: Repo, seal: str, goes_on: Callable[[], bool]) -> SealTexts:
    """Returns the texts of a seal. `goes_on`: returns False if they are not needed any more."""
    from svc.api.sync_transport import BranchTransport
    from svc.flows.search.texts import files_of_seal, texts_of_seal

    transport = BranchTransport(api, repo.id, repo.default_branch)
    files = sorted(files_of_seal(transport, seal, repo.id).items())
    files = [(path, file) for path, file in files if file.kind == "text"]
    small = {path: file for path, file in files if file.size <= LARGEST}
    read: list[FileText] = []
    room = MOST
    for path, text in texts_of_seal(transport, small):
        room -= len(text or "")
        if room < 0 or not goes_on():
            return SealTexts(read, False, len(files) - len(small))
        if text is not None:
            read.append(FileText(path, text, text.casefold()))
    return SealTexts(read, True, len(files) - len(small))


def find(texts: Iterable[FileText], words: str) -> list[Hit]:
    """Returns the first HITS lines that contain `words`, in upper or lower case."""
    sought = words.casefold()
    hits = (
        Hit(file.path, *line)
        for file in texts
        if sought
        for line in lines_with(file.text, file.folded, sought)
    )
    return list(islice(hits, HITS))


def excerpt(text: str, words: str, room: int) -> str:
    """Returns the text, or its end from shortly before the first occurrence of `words` if that would not fit
    into `room` columns. `words` are in lower case."""
    start, end, _ = found_columns(text, words, room) or (0, 0, 0)
    if end < room:
        return text
    return CUT + "".join(part for part, _ in skip(((text, "text"),), max(0, start - room // 3)))


class MatchingLines(Lines):
    """The lines that contain the typed text. `search_for`: called with the text at each change of it."""

    search_for: Callable[[str], None] = staticmethod(lambda text: None)

    def filter(self, text: str) -> None:
        self.search_for(text)


class FindText(ChooseBeside):
    """A card in which the user searches in the texts of a seal. `texts`: what was read before, None if it is
    to be read with `read` on a thread. `keep`: called with what was read. `chosen`: called with the path and
    the line that the user chooses. `before`: the words that were sought last. The card begins with them, and
    a letter that is typed first takes their place."""

    LINES = MatchingLines
    LIST_SHARE = 55
    WIDTH, SHARE = 200, 85
    SIGN = "text to find, in upper or lower case"
    EMPTY = "type a text to look for"

    def __init__(
        self,
        texts: SealTexts | None,
        read: Callable[[Callable[[], bool]], SealTexts],
        keep: Callable[[SealTexts], None],
        chosen: Callable[[Hit], None],
        before: str = "",
    ) -> None:
        super().__init__("search in all files", (), chosen)
        self._texts, self._read, self._keep = texts, read, keep
        self._words, self._before = "", before
        self._hits: list[Hit] = []
        self._entered: str | None = None  # what was entered before the texts were there

    def on_mount(self) -> None:
        # Textual calls that of `Choose` by itself; called here as well, it would open a second prompt.
        rows = self.query_one(f"#{self.LIST}", MatchingLines)
        rows.search_for = self._list_lines
        if self._texts is not None:
            return
        rows.waiting = "◐ reading the files"

        def work() -> None:
            try:
                texts = self._read(lambda: self.remains)
            except SvcError as error:
                words = sentence(error)
                self.svc.later(lambda: self._miss(words))
            else:
                self.svc.later(lambda: self._take_texts(texts))

        self.svc.run_worker(work, thread=True, group="texts", exclusive=True, exit_on_error=False)

    @property
    def sought(self) -> str:
        """The typed words."""
        return self._words

    def do_filter(self, typed: str = "") -> None:
        before, self._before = self._before, ""
        super().do_filter(typed or before)
        if before and self._prompt is not None:
            self._prompt.action_select_all()
            self._list_lines(before)

    def title_parts(self) -> Sequence[Part]:
        words = ""
        if self._words and self._texts is not None:
            files, hits = len({hit.path for hit in self._hits}), len(self._hits)
            lines = f"{hits}+ lines" if hits >= HITS else count(hits, "line")
            words = f" · {lines} in {count(files, 'file')}"
        return ((f" {self._what}{words}", "title"), (self._left_out, "warn"))

    @property
    def _left_out(self) -> str:
        """What is not searched, for the title; "" if everything is."""
        texts = self._texts
        if texts is None:
            return ""
        left_out = [f"{texts.large} over {LARGEST // 1024} KiB left out"] if texts.large else []
        left_out += [] if texts.is_whole else [f"only the first {MOST // 1024**2} MiB"]
        return f" · {', '.join(left_out)}; :grep searches all" if left_out else ""

    def _miss(self, words: str) -> None:
        if self.remains:
            self.listed.waiting, self.listed.empty = "", "the files were not read"
            self.listed.refresh()
            self.drop_keys()
            self.say(words, "warn")

    def _take_texts(self, texts: SealTexts) -> None:
        if not self.remains:
            return
        self._texts = texts
        self._keep(texts)
        self._list_lines(self._words)
        if self._entered is not None:
            typed, self._entered = self._entered, None
            self.say("")
            self._choose(self.listed, typed)
            self.release_keys()

    def _list_lines(self, words: str) -> None:
        self._words = words
        if self._texts is None:
            return
        self._hits = find(self._texts.files, words)
        self.listed.unmatched = self.listed.empty = "no file contains this" if words else self.EMPTY
        self.listed.show(LazyRows(self._hits, self._row, lambda hit: hit))
        self.listed.go(0)
        self.fit(HITS if self.previews and self._hits else len(self._hits))
        self.show_frame()
        self.rest()

    def _row(self, hit: Hit) -> Item:
        path = hit.path if len(hit.path) <= PATH else f"…{hit.path[1 - PATH :]}"
        place: tuple[Part, ...] = ((safe(path), "accent"), (f":{hit.line}  ", "dim"))
        words = self._words.casefold()
        room = self.listed.room - self.listed.marked - sum(cell_len(text) for text, _ in place)
        parts = mark_found(((excerpt(safe(hit.text.strip()), words, room), "text"),), words)
        return Item(hit, (*place, *parts))

    def _choose(self, lines: Lines, typed: str) -> None:
        if self._texts is None and typed:
            self._entered = typed
            self.hold_keys(READING_SECONDS)
            self.say("◐ reading the files", "dim")
        else:
            super()._choose(lines, typed)

    def preview_of(self, key: Hashable) -> None:
        """Show the file around the line under the cursor."""
        if self._texts is None or not isinstance(key, Hit):
            return
        file = next(file for file in self._texts.files if file.path == key.path)
        above = max(1, self.preview.fits // 2 - 2)  # so that the line is visible
        first, words = max(0, key.line - 1 - above), self._words.casefold()
        rows: list[tuple[Part, ...]] = [((safe(key.path), "title"),), ()]
        place = found_columns(safe(key.text), words, self.preview.room - GUTTER - 2)
        start, end, room = place or (0, 0, 1)
        aside = 0 if end <= room else max(0, start - room // 3)  # so that it is visible as well
        for number, line in enumerate(file.text.split("\n")[first : first + TOP], first + 1):
            role = "accent" if number == key.line else "gutter"
            parts = skip(mark_found(((safe(line), "text"),), words), aside)
            rows.append(((f"{number:>{GUTTER}} ", role), (CUT if aside and parts else "", "dim"), *parts))
        self.show_preview(key, "", rows)
