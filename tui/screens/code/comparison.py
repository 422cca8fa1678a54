"""The screen that compares two branches, tags or seals. Above are both and how far they are apart. Below are
the files that differ and their lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from localstore.core.model.history import Compare, SealSummary
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from localstore.core.words import count
from tui import contents
from tui.actions import Action
from tui.screens.code.about_changes import AboutChanges
from tui.screens.code.changed_files import CHANGES
from tui.screens.code.seal_rows import Row, counts
from tui.screens.lists.glance import seal_line
from tui.text import Part, cut_middle, safe

LONGEST = 32  # columns of a name in the rows above the files
ASKING = "asking the server"


class ComparedRef(NamedTuple):
    """One of the two that are compared. `name`: the branch or tag, or the beginning of the id of a seal.
    `kind`: `branch`, `tag` or `seal`. `seal`: the id of the seal at its head."""

    name: str
    kind: str
    seal: str


class Comparison(AboutChanges):
    """The screen that compares two branches, tags or seals of a repository."""

    ACTIONS: tuple[Action, ...] = (
        *CHANGES,
        Action("since", ("d",), "since they parted", footer=True),
        Action("swap", ("x",), "swap the two", footer=True),
    )

    def __init__(self, repo: Repo, base: ComparedRef, head: ComparedRef, *, direct: bool = True) -> None:
        """Makes the screen. `direct`: whether `head` is compared with `base` itself. Otherwise it is compared
        with the seal at which both parted."""
        super().__init__(repo)
        self._base, self._head, self._direct = base, head, direct
        self._compared: Compare | None = None
        self._seals: dict[str, SealSummary] = {}  # by id

    @property
    def new_seal(self) -> str:
        return self._head.seal

    @property
    def old_seal(self) -> str:
        parted = self._compared.merge_base if self._compared is not None else None
        return self._base.seal if self._direct else parted or ""

    @property
    def _span(self) -> str:
        """The comparison as `svc diff` takes it."""
        return f"{self._base.name}{'..' if self._direct else '...'}{self._head.name}"

    def whole_diff(self) -> str:
        return f"svc diff {self._span}"

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {"seal": self._head.seal}

    def title_parts(self) -> Sequence[Part]:
        return (
            (f" {safe(self.repo.full_name)}", "title"),
            (f"  {safe(self._span)}  ", "accent"),
        )

    def label_of(self, action: Action) -> str:
        label = super().label_of(action)
        if action.id != "since" or not label:
            return label
        if not self._direct:
            return "with each other"
        return label if self._compared is not None and self._compared.behind else ""  # else it is the same

    def on_mount(self) -> None:
        # Textual calls that of the base classes by itself.
        self._ask()

    def do_refresh(self) -> None:
        """Read where the branches and tags are now, and compare those seals."""
        self.svc.load(contents.refs(self.repo.id), self._take_heads)

    def _take_heads(self, refs: list[Ref], at: float) -> None:
        heads: dict[tuple[str, str], str | None] = {(ref.name, ref.type): ref.head for ref in refs}
        before = self._base.seal, self._head.seal
        self._base, self._head = (
            side._replace(seal=heads.get((side.name, side.kind)) or side.seal)
            for side in (self._base, self._head)
        )
        if (self._base.seal, self._head.seal) != before or self._compared is None:
            self._ask()

    def _ask(self) -> None:
        """Request the comparison and the two seals. Until it has arrived, no files are shown."""
        self._compared, files = None, self.diff.files
        self.forget_colours()
        self.show_changes(NO_CHANGES)
        self._path = files[0].path if files else ""
        for lines in (self.listing, self.diff):
            lines.waiting, lines.is_unread = ASKING, False
            lines.refresh()
        self.diff.empty = ""  # it is painted again when the size of the terminal changes
        base, head, direct = self._base, self._head, self._direct

        def paint(compare: Compare, at: float) -> None:
            if (base, head, direct) == (self._base, self._head, self._direct):
                self._compared = compare
                self.paint()
                self.show_changes(compare)

        def learn(seal: SealSummary, at: float) -> None:
            self._seals[seal.id] = seal
            self.paint()

        self.paint()
        self.svc.load(contents.changes(self.repo.id, base.seal, head.seal, direct=direct), paint)
        for side in (base, head):
            self.svc.load(contents.seal(self.repo.id, side.seal), learn)

    def prepare_changes(self, compare: Compare) -> None:
        base, head = safe(self._base.name), safe(self._head.name)
        same = f"{base} and {head} have the same files"
        none = same if self._direct else f"{head} has changed nothing since {base} and it parted"
        self.listing.empty = self.diff.empty = none

    @property
    def about_title(self) -> str:
        return safe(self._span)

    def about_rows(self, *, wide: bool) -> list[Row]:
        """Returns the rows about the two. On a narrow screen they say only how far the two are apart."""
        apart, how = self._apart(), self._how()
        if not wide:
            return [apart, ((how, "dim"),)] if how else [apart]
        relation: Row = ((f"  ·  {how}", "dim"),) if how else ()
        return [self._side_row("old", self._base), self._side_row("new", self._head), (*apart, *relation)]

    def _side_row(self, word: str, side: ComparedRef) -> Row:
        """Returns the row about one of the two: its name, and the newest seal of it."""
        names = [cut_middle(safe(name), LONGEST) for name in (side.name, self._base.name, self._head.name)]
        name = set_cell_size(names[0], max(cell_len(name) for name in names))
        seal = self._seals.get(side.seal)
        rest: Row = ((side.seal[:8], "accent"),) if seal is None else seal_line(seal, self.svc.clock())
        return (
            (f"{word}  ", "dim"),
            (name, "warn" if side.kind == "tag" else "good"),
            ("  ", "text"),
            *rest,
        )

    def _apart(self) -> Row:
        """Returns parts that say how many seals the two are apart, and how much differs."""
        compared = self._compared
        if compared is None:
            return ((f"seals {self._base.seal[:8]} and {self._head.seal[:8]}", "dim"),)
        ahead, behind = compared.ahead, compared.behind
        apart: Row = (
            (f"{count(ahead, 'seal')} ahead", "good" if ahead else "dim"),
            (f", {behind} behind", "warn" if behind else "dim"),
        )
        if self._base.seal == self._head.seal:
            apart = (("the same seal", "dim"),)
        return (
            *apart,
            ("  ·  ", "dim"),
            *counts(compared),
        )

    def _how(self) -> str:
        """Returns words for what the changes are relative to, "" if that needs no words."""
        compared = self._compared
        if compared is None or (self._direct and not compared.behind):
            return ""
        if self._direct:
            return "what only the old one has counts as removed"
        parted = compared.merge_base
        return f"since {parted[:8]}, where they parted" if parted else "they have no seal in common"

    def do_since(self) -> None:
        """Compare with the seal at which the two parted or, if that is shown, with each other."""
        self._direct = not self._direct
        self._ask()

    def do_swap(self) -> None:
        self._base, self._head = self._head, self._base
        self._ask()


NO_CHANGES = Compare(base=None, head="", merge_base=None, ahead=0, behind=0, files=[])
