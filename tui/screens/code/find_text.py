"""A card to search in the texts of all files of a seal. The lines that contain the typed text are listed. If
there is room, the file around the line under the cursor is shown beside the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from localstore.core.errors import SvcError
from svc.api import Api
from svc.flows.search.lines import lines_with
from tui.client import sentence
from tui.screens.base import READING_SECONDS
from tui.screens.choose_beside import ChooseBeside
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, mark_found
from tui.widgets.made import LazyRows

LARGEST = 256 * 1024  # bytes of a file in which is searched
MOST = 16 * 1024 * 1024  # characters that are searched
HITS = 1000  # lines that are listed
TOP = 60  # lines of the preview
PATH, GUTTER = 32, 5  # columns of a path, and of a line number


class FileText(NamedTuple):
    """A file and its text. `folded`: the text in lower case, in which is searched."""

    path: str
    text: str
    folded: str


class Hit(NamedTuple):
    """A line that contains what is searched for."""

    path: str
    line: int
    text: str


def read_texts(api: Api, repo_id: str, seal: str, goes_on: Callable[[], bool]) -> tuple[list[FileText], bool]:
    """Returns the texts of a seal, and whether they are all of them. `goes_on`: returns False if they are not
    needed any more."""
    texts: list[FileText] = []
    room = MOST
    for path, text in api.history.texts(repo_id, seal, LARGEST):
        room -= len(text)
        if room < 0 or not goes_on():
            return texts, False
        texts.append(FileText(path, text, text.casefold()))
    return texts, True


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


class Found(Lines):
    """The lines that contain the typed text. `search`: called with the text at each change of it."""

    search_for: Callable[[str], None] = staticmethod(lambda text: None)

    def filter(self, text: str) -> None:
        self.search_for(text)


class FindText(ChooseBeside):
    """A card in which the user searches in the texts of a seal. `texts`: what was read before, None if it is
    to be read with `read` on a thread. `keep`: called with what was read. `chosen`: called with the path and
    the line that the user chooses. `before`: the words that were sought last. The card begins with them, and
    a letter that is typed first takes their place."""

    LINES = Found
    LIST_SHARE = 55
    SIGN = "text to find, in upper or lower case"
    EMPTY = "type a text to look for"

    def __init__(
        self,
        texts: Sequence[FileText] | None,
        read: Callable[[Callable[[], bool]], tuple[list[FileText], bool]],
        keep: Callable[[list[FileText]], None],
        chosen: Callable[[Hit], None],
        before: str = "",
    ) -> None:
        super().__init__("search in all files", (), chosen)
        self._texts, self._read, self._keep = texts, read, keep
        self._is_whole = True  # whether all texts were read
        self._words, self._before = "", before
        self._hits: list[Hit] = []
        self._entered: str | None = None  # what was entered before the texts were there

    def on_mount(self) -> None:
        # Textual calls that of `Choose` by itself; called here as well, it would open a second prompt.
        rows = self.query_one(f"#{self.LIST}", Found)
        rows.search_for = self._list_lines
        if self._texts is not None:
            return
        rows.waiting = "◐ reading the files"

        def work() -> None:
            try:
                texts, is_whole = self._read(lambda: self.remains)
            except SvcError as error:
                words = sentence(error)
                self.svc.later(lambda: self._miss(words))
            else:
                self.svc.later(lambda: self._take_texts(texts, is_whole))

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
            files, count = len({hit.path for hit in self._hits}), len(self._hits)
            more = "+" if count >= HITS else ""
            words = (
                f" · {count}{more} line{'' if count == 1 else 's'} in {files} file{'' if files == 1 else 's'}"
            )
        rest = "" if self._is_whole else " · the first 16 MiB"
        return ((f" {self._what}{words}{rest}", "title"),)

    def _miss(self, words: str) -> None:
        if self.remains:
            self.listed.waiting, self.listed.empty = "", "the files were not read"
            self.listed.refresh()
            self.drop_keys()
            self.say(words, "warn")

    def _take_texts(self, texts: list[FileText], is_whole: bool) -> None:
        if not self.remains:
            return
        self._texts, self._is_whole = texts, is_whole
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
        self._hits = find(self._texts, words)
        self.listed.unmatched = self.listed.empty = "no file contains this" if words else self.EMPTY
        self.listed.show(LazyRows(self._hits, self._row, lambda hit: hit))
        self.listed.go(0)
        self.fit(len(self._hits))
        self.show_frame()
        self.rest()

    def _row(self, hit: Hit) -> Item:
        path = hit.path if len(hit.path) <= PATH else f"…{hit.path[1 - PATH :]}"
        text = mark_found(((safe(hit.text.strip()), "text"),), self._words.casefold())
        return Item(hit, ((safe(path), "accent"), (f":{hit.line}  ", "dim"), *text))

    def _choose(self, lines: Lines, typed: str) -> None:
        if self._texts is None and typed:
            self._entered = typed
            self.hold_keys(READING_SECONDS)
            self.say("◐ reading the files", "dim")
        else:
            super()._choose(lines, typed)

    def preview_of(self, key: Hashable) -> None:
        """Show the file around the line under the cursor."""
        file = next(
            (file for file in self._texts or () if isinstance(key, Hit) and file.path == key.path), None
        )
        if file is None or not isinstance(key, Hit):
            return
        above = max(1, self.preview.fits // 2 - 2)  # so that the line is visible
        first, words = max(0, key.line - 1 - above), self._words.casefold()
        rows: list[tuple[Part, ...]] = [((safe(key.path), "title"),), ()]
        for number, line in enumerate(file.text.split("\n")[first : first + TOP], first + 1):
            role = "accent" if number == key.line else "gutter"
            rows.append(((f"{number:>{GUTTER}} ", role), *mark_found(((safe(line), "text"),), words)))
        self.show_preview(key, "", rows)
