"""A card to find a file by some letters of its path. If there is room, the file under the cursor is shown
beside the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from localstore.core.model.history import Blob, Tree
from svc.console.table import size
from tui import contents
from tui.highlight import colour_text, plain
from tui.screens.choose_beside import ChooseBeside
from tui.text import Part, safe
from tui.widgets.fuzzy import Fuzzy
from tui.widgets.lines import Item
from tui.widgets.made import LazyRows

PREVIEWED = 256 * 1024  # bytes of a file that is previewed
TOP = 60  # lines of it that are shown


class FindFile(ChooseBeside):
    """A card with the paths of all files of a seal. `chosen`: called with the path that the user chooses."""

    LINES = Fuzzy
    LIST_SHARE = 45

    def __init__(self, repo_id: str, seal: str, tree: Tree, chosen: Callable[[str], None]) -> None:
        self._repo_id, self._seal = repo_id, seal
        self._sizes: Mapping[str, int] = {entry.path: entry.size for entry in tree.entries}
        paths = list(self._sizes)
        rows = LazyRows(paths, lambda path: Item(path, ((safe(path), "text"),)), lambda path: path, str)
        super().__init__("find file", rows, chosen)

    def on_mount(self) -> None:
        self.call_after_refresh(self.rest)

    def preview_of(self, key: Hashable) -> None:
        path = str(key)
        if self._sizes.get(path, 0) > PREVIEWED:
            self._show(path, [((size(self._sizes[path]), "dim"),)])
            return

        def paint(blob: Blob, at: float) -> None:
            if blob.encoding != "utf-8" or not blob.content:
                self._show(path, [((f"{size(blob.size)} · not text" if blob.size else "empty", "dim"),)])
                return
            content = blob.content
            lines = plain(content)
            self._show(path, lines[:TOP])

            def work() -> None:
                in_colours = colour_text(content, path)
                if in_colours is not None:
                    self.svc.later(lambda: self._show(path, in_colours[:TOP]))

            self.svc.run_worker(work, thread=True, group="highlight", exclusive=True, exit_on_error=False)

        self.svc.load(contents.file(self._repo_id, self._seal, path), paint)

    def _show(self, path: str, rows: Sequence[tuple[Part, ...]]) -> None:
        """Show these rows in the preview, below the path of the file."""
        self.show_preview(path, "", [((safe(path), "title"),), (), *rows])
