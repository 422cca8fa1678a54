"""The history of a file in the tab Code: its seals, the changes of each, and steps to the seals before and
after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.content import Content
from textual.timer import Timer

from localstore.core.model.history import ChangedFile, Compare, SealSummary
from tui import contents
from tui.screens.code.differing import Differing
from tui.screens.code.file_view import FileView
from tui.screens.split import REST
from tui.text import Part, ago, safe
from tui.theme import css_colour
from tui.widgets.diff import Diff
from tui.widgets.frame import Line
from tui.widgets.lines import Item, Lines, sequence

SEALS = "40%"  # of the height, where what a seal changed stands below them
TALL = 24  # rows of a screen with both


class History(Differing, FileView):
    """The history of a file: shows changes in `diff`, and seals in `file`."""

    _diff_of = ""  # the seal whose changes `diff` shows
    _rests: Timer | None = None  # until the cursor among the seals rests

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    @property
    def previews_seals(self) -> bool:
        """Whether the changes of a seal are shown below the list of seals."""
        return self._mode == "history" and self.wide and self.app.size.height >= TALL

    def place_diff(self) -> None:
        """Show the comparison below the list of seals, or alone if the terminal has no room for both."""
        below = self.previews_seals
        self.diff.display = below or self._mode == "diff"
        if not self.diff.display:
            self.diff.drop_files()
        self.diff.styles.border_top = ("solid", css_colour(self.svc.colours, "line")) if below else None
        self.query_one("#file").styles.height = SEALS if below else "1fr"

    def rest_on_seal(self) -> None:
        """Called when the cursor is on a seal. If it rests there, the changes of the seal are shown below."""
        if self._rests is not None:
            self._rests.stop()
        self._rests = self.set_timer(REST, self._show_below) if self.previews_seals else None

    def _show_below(self) -> None:
        seal = self.query_one("#file", Lines).key
        if not self.previews_seals or not self.of.in_front or not isinstance(seal, str):
            return
        self._diff_of = seal

        def paint(compare: Compare, at: float) -> None:
            if self.previews_seals and self.query_one("#file", Lines).key == seal:
                self.diff.border_title = Content(f"{seal[:8]}")
                self.diff.show_files(self._own_first(compare.files))

        self.svc.load(contents.brought(self.of.repo.id, seal), paint)

    def _own_first(self, files: Sequence[ChangedFile]) -> list[ChangedFile]:
        """The files of a comparison, beginning with the file whose history is shown."""
        return sorted(files, key=lambda file: self.path not in (file.path, file.old_path))

    def do_history(self) -> None:
        repo, path, ref = self.of.repo, self.path, self.of.ref_name
        self._mode = "history"
        self._arrange()

        def paint(seals: list[SealSummary], at: float) -> None:
            if self._mode != "history":
                return
            now = self.svc.clock()
            self._arrange()
            items = [
                Item(
                    seal.id,
                    (
                        (f"{seal.id[:8]} ", "accent"),
                        ("⑂ " if seal.merged else "", "dim"),
                        (safe(seal.message.partition("\n")[0]), "text")
                        if seal.message.strip()
                        else ("no message", "dim"),
                    ),
                    (
                        (f"@{safe(seal.provenance.who.handle or '?')} ", "dim"),
                        (ago(seal.created_at, now), "dim"),
                    ),
                )
                for seal in seals
            ]
            self.query_one("#file", Lines).show(sequence(items), self.of.seal)
            self._title("history")
            self._focus("file")
            self.rest_on_seal()

        self.svc.load(contents.history(repo.id, ref, path), paint)

    def show_diff(self, seal: str) -> None:
        """Show the changes of one seal."""
        repo = self.of.repo
        self._mode, self._diff_of = "diff", seal
        self._arrange()
        self._focus("diff")
        left: list[Part] = [(f"seal {seal[:8]}", "title")]
        right: list[Part] = []

        def head() -> None:
            self.query_one("#file_title", Line).put(left, right)

        def paint(compare: Compare, at: float) -> None:
            if self._mode == "diff" and self._diff_of == seal:
                self.query_one("#diff", Diff).show_files(self._own_first(compare.files))
                count = len(compare.files)
                right.append((f"  {count} file{'' if count == 1 else 's'}", "dim"))
                head()

        def paint_seal(checked: contents.CheckedSeal, at: float) -> None:
            if self._mode == "diff" and self._diff_of == seal:
                seal_shown = checked.seal
                age = ago(seal_shown.created_at, self.svc.clock())
                who = f"@{safe(seal_shown.provenance.who.handle or '?')} {age}"
                left.append((f"  {safe(seal_shown.message.partition(chr(10))[0])}", "text"))
                signed: Part = ("  ✗ does not verify", "bad") if checked.fault else ("  ✓ signed", "good")
                right[:0] = [(who, "dim"), signed]
                head()

        self.svc.load(contents.checked_seal(repo, seal), paint_seal)
        self.svc.load(contents.brought(repo.id, seal), paint)

    def do_older(self) -> None:
        self._step(1)

    def do_newer(self) -> None:
        self._step(-1)

    def _step(self, by: int) -> None:
        """Show the file, or all files, at the seal before (`by` −1) or after (1) the shown one."""
        repo, path, ref, current = self.of.repo, self.path, self.of.ref_name, self.of.seal
        if current is None:
            return
        stepped: list[bool] = []

        def of_branch(seals: list[SealSummary], at: float) -> None:
            """Step from the seal that made the shown text. That can be older than the shown seal."""
            ids = [seal.id for seal in seals]
            if current in ids:
                step(ids, ids.index(current))
            elif current == self.of.head:
                step(ids, 0)
            else:  # between two that changed the file
                line = contents.history(repo.id, current, path, first_parent=True)
                self.svc.load(line, partial(of_seal, ids))

        def of_seal(ids: list[str], seals: list[SealSummary], at: float) -> None:
            nearest = next((seal.id for seal in seals if seal.id in ids), None)
            step(ids, ids.index(nearest) if nearest is not None else len(ids) - 1)

        def step(ids: list[str], place: int) -> None:
            if stepped or not ids:
                return
            stepped.append(True)
            target = place + by
            if target >= len(ids):
                self.of.say("this is the oldest", "dim")
            elif target > 0:
                self.of.go_to(ref, ids[target])
            elif current == self.of.head:
                self.of.say("this is the newest", "dim")
            else:  # the newest text is that of the branch, and can be edited there
                self.of.go_to(ref, self.of.head or ids[0])

        self.svc.load(contents.history(repo.id, ref, path, first_parent=True), of_branch)
