"""The tree of the tab Code. It shows the entries of one folder. Folders among them can be unfolded, which
shows their entries below them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from localstore.core.model.history import Tree, TreeFile
from localstore.core.words import count
from svc.console.table import size
from tui import contents
from tui.screens.code.live import Live, who_is_in
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence
from tui.wording import UNSEEN

if TYPE_CHECKING:
    from tui.screens.repo_page import RepoPage

DEEPEST = 6  # levels that are indented


class FolderTree(Live):
    """The tree of the tab Code. It shows the entries of `folder`, and the entries of unfolded folders below
    these."""

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self.folder = ""
        self._wanted_folder = ""  # the folder that was asked for last
        self._tree: Tree | None = None  # of `folder`; None until it is read
        self._unfolded: dict[str, Tree | None] = {}  # folders unfolded in place, by path; None until read
        self._sizes: dict[str, int] = {}  # of the files in the tree, by path
        self._revealed = ""  # the file whose row the cursor goes to once it is there

    def _rest(self) -> None:
        """Called when the cursor has moved to an entry. If it stays there for a moment, a preview of the
        entry is shown."""
        raise NotImplementedError

    def _rests_no_more(self) -> None:
        """Cancel the preview that is due for the entry under the cursor."""
        raise NotImplementedError

    def _load_folder(self, folder: str, cursor: Hashable | None = None) -> None:
        repo, seal = self.of.repo, self.of.seal
        self._rests_no_more()
        if seal is None:
            tree = self.query_one("#tree", Lines)
            tree.show(())
            if not self.of.read:
                tree.is_unread = self.svc.news.state == "offline"
                tree.waiting = UNSEEN if tree.is_unread else "asking the server"
            return
        if folder != self.folder:
            self._unfolded.clear()
            self._revealed = ""
        self._wanted_folder = folder

        def paint(tree: Tree, at: float) -> None:
            if seal == self.of.seal and folder == self._wanted_folder:
                self.folder, self._tree = folder, tree
                self._paint_tree(cursor)

        def not_read(_: BaseException) -> None:
            if folder == self._wanted_folder:
                self._wanted_folder = self.folder

        self.svc.load(contents.tree(repo.id, seal, folder), paint, not_read)
        for path in self._unfolded:
            self._load_unfolded(path)

    def _load_unfolded(self, path: str) -> None:
        seal = self.of.seal
        if seal is None:
            return

        def paint(tree: Tree, at: float) -> None:
            if path in self._unfolded and seal == self.of.seal:
                self._unfolded[path] = tree
                self._paint_tree()

        self.svc.load(contents.tree(self.of.repo.id, seal, path), paint)

    def _paint_tree(self, cursor: Hashable | None = None) -> None:
        """Paint the entries of the folder. Each is followed by the people who are in it."""
        items = [Item(("up", ""), (("  ../", "dim"),))] if self.folder else []
        self._sizes = {}
        self._add_entries(items, self.folder, self._tree, 0)
        if self._revealed in self._sizes:
            cursor, self._revealed = ("file", self._revealed), ""
        self.query_one("#tree", Lines).show(sequence(items), cursor)
        self._arrange()
        self._rest()

    def _add_entries(self, items: list[Item], folder: str, tree: Tree | None, depth: int) -> None:
        """Add the rows of a folder's entries to `items`. An unfolded folder is followed by the rows of its
        own entries. `tree`: the entries in the seal, None until they are read. `depth`: 0 for the folder that
        the tree shows, 1 for the folders in it, and so on."""
        sealed = tree.entries if tree is not None else ()
        self._sizes |= {entry.path: entry.size for entry in sealed if entry.kind != "dir"}
        entries = {**{entry.path: entry.kind for entry in sealed}, **self.live_entries(folder)}
        indent = "  " * min(depth, DEEPEST)
        for path, kind in sorted(entries.items(), key=lambda entry: (entry[1] != "dir", entry[0])):
            name = safe(path.rsplit("/", 1)[-1])
            marks = (*self.live_entry(path), *who_is_in(self._people, path))
            if kind != "dir":
                items.append(Item(("file", path), ((f"{indent}  {name}", "text"),), marks))
                continue
            sign = "▾ " if path in self._unfolded else "▸ "
            items.append(Item(("dir", path), ((f"{indent}{sign}", "dim"), (f"{name}/", "accent")), marks))
            if path in self._unfolded:
                self._add_entries(items, path, self._unfolded[path], depth + 1)

    def take_row(self) -> None:
        """If the tree has the focus, make the file under its cursor the one that a key is about, even if its
        preview is not shown yet. For a folder there is none."""
        tree = self.query_one("#tree", Lines)
        if self._mode != "file" or self.replaying or not tree.has_focus or not isinstance(tree.key, tuple):
            return
        kind, path = tree.key
        if kind != "file":
            self.path = None
        elif path != self.path:
            self.open_file(str(path), glimpsed=True)

    def take_previewed(self) -> None:
        """Do the same where a preview of the row is shown, or will be shown in a moment. So a key means the
        same before the preview as after it."""
        if self.wide:
            self.take_row()

    # --- unfolding

    def reveal(self, path: str) -> None:
        """Move the cursor of the tree to a file. Folders around it are unfolded in place, and the others stay
        as they are. A file that is not below the folder of the tree is shown in the tree of all files."""
        folder = self.folder if path.startswith(f"{self.folder}/") else ""
        if folder != self._wanted_folder:
            self._load_folder(folder)
        steps = path.split("/")[:-1]
        around = ["/".join(steps[: depth + 1]) for depth in range(len(steps))]
        self._revealed = path
        for unfolded in around:
            if len(unfolded) > len(folder) and unfolded not in self._unfolded:
                self._unfolded[unfolded] = None
                self._load_unfolded(unfolded)
        if self._tree is None:
            self._load_folder(self.folder)
        else:
            self._paint_tree()

    def do_unfold(self) -> None:
        """In the tree, unfold the folder under the cursor, or open the file. In a text, scroll right."""
        self.do_right()

    def do_right(self) -> None:
        tree = self.query_one("#tree", Lines)
        if self.of.lines is not tree:
            self.of.do_right()
        elif isinstance(tree.key, tuple) and tree.key[0] == "dir" and tree.key[1] not in self._unfolded:
            path = str(tree.key[1])
            self._unfolded[path] = None
            self._load_unfolded(path)
            self._paint_tree()
        elif isinstance(tree.key, tuple) and tree.key[0] == "file":
            tree.choose()
        else:
            tree.move(1)

    def do_left(self) -> None:
        """In the tree, fold the folder under the cursor, or move to the parent folder. In a text, scroll
        left."""
        tree = self.query_one("#tree", Lines)
        key = tree.key
        if self.of.lines is not tree:
            self.of.do_left()
        elif isinstance(key, tuple) and key[0] == "dir" and key[1] in self._unfolded:
            folded = str(key[1])
            for path in [path for path in self._unfolded if path == folded or path.startswith(f"{folded}/")]:
                del self._unfolded[path]
            self._paint_tree()
        elif isinstance(key, tuple):
            around = str(key[1]).rpartition("/")[0]
            if around in self._unfolded:
                tree.go_to(("dir", around))
            elif self.folder:
                self._load_folder(self.folder.rpartition("/")[0], ("dir", self.folder))

    # --- what is in a folder

    def _glimpse_folder(self, key: tuple[str, str]) -> None:
        """Request and show what is in the folder under the cursor. For the row `../` that is the parent
        folder. `key`: the key of the row in the tree."""
        kind, path = key
        seal = self.of.seal
        if seal is None:
            return
        if kind == "up":
            path = self.folder.rpartition("/")[0]

        def paint(tree: Tree, at: float) -> None:
            if seal == self.of.seal:
                self._show_entries(key, path, tree)

        self.svc.load(contents.tree(self.of.repo.id, seal, path), paint)

    def _shows_preview(self, key: tuple[str, str]) -> bool:
        """Whether the pane of the file shows the preview of this row of the tree. It does not once the cursor
        has left the row, or once the pane itself has the focus."""
        tree, file = self.query_one("#tree", Lines), self.query_one("#file", Lines)
        return self._mode == "file" and tree.key == key and not file.has_focus

    def _show_large(self, path: str) -> None:
        """Show the size of the file under the cursor, which is too large for a preview."""
        if self._shows_preview(("file", path)):
            self.show_no_file(path, is_folder=False)
            row = (("  not previewed; ", "dim"), ("enter", "accent"), (" opens it", "dim"))
            self.query_one("#file", Lines).show([Item(None, row)])
            self._head(safe(path), size(self._sizes[path]) if path in self._sizes else "")

    def _show_entries(self, key: tuple[str, str], path: str, folder: Tree) -> None:
        """Show the entries of a folder as the preview of a row, with the sizes of files. `key`: the key of
        the row in the tree. `path`: the path of the folder. `folder`: its entries."""
        file = self.query_one("#file", Lines)
        if not self._shows_preview(key):
            return
        self.show_no_file(path, is_folder=True)
        entries = sorted(folder.entries, key=lambda entry: (entry.kind != "dir", entry.path))
        file.show(sequence([_entry_row(entry) for entry in entries]))
        files = [entry.size for entry in entries if entry.kind != "dir"]
        folders = len(entries) - len(files)
        counted: list[str] = []
        if folders:
            counted.append(count(folders, "folder"))
        if files:
            counted.append(f"{count(len(files), 'file')}, {size(sum(files))}")
        self._head(f"{safe(path)}/" if path else f"{safe(self.of.repo.name)}/", " · ".join(counted))

    def show_no_file(self, path: str, *, is_folder: bool) -> None:
        """Called before the pane of the file shows something other than the text of a file. `path`: the file
        or folder that it is about."""
        raise NotImplementedError


def _entry_row(entry: TreeFile) -> Item:
    """Returns the row of a file or folder, for the preview of the folder that contains it."""
    name = safe(entry.path.rsplit("/", 1)[-1])
    if entry.kind == "dir":
        return Item(None, (("▸ ", "dim"), (f"{name}/", "name")))
    sized: Part = (size(entry.size), "dim")
    return Item(None, ((f"  {name}", "text"),), (sized,))
