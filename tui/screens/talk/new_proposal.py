"""The form of a new proposal: branches, title, text, labels, people, reviewers, and whether it is a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich.cells import cell_len

from localstore.core.model import proposal as proposals
from localstore.core.model.history import SealSummary
from localstore.core.model.limits import ISSUE_TITLE_CHARS
from localstore.core.model.proposal import ProposalCreate
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from localstore.core.words import first_line
from tui import contents
from tui.actions import Action
from tui.changed import counts_of, sign_of
from tui.contents import ChangedPaths
from tui.screens.base import READING_SECONDS
from tui.screens.lists.glance import seal_line
from tui.screens.talk.composing import Composing
from tui.screens.talk.reviewers import Written, reviewer_rows, written_by
from tui.text import Part, safe
from tui.widgets.lines import Item

BLANK: tuple[Part, ...] = (("", "text"),)
NONE_TAKEN: Mapping[str, int] = MappingProxyType({})


def title_and_text(messages: Sequence[str]) -> tuple[str, str]:
    """Returns (title, text) of a proposal for seals with these messages, the newest first. The title is the
    first line of the newest message. The text is the rest of a single message, or the first lines of several
    messages."""
    if not messages:
        return "", ""
    title, _, rest = messages[0].strip().partition("\n")
    if len(messages) > 1:
        rest = "\n".join(f"- {first_line(message)}" for message in reversed(messages))
    return title.strip()[:ISSUE_TITLE_CHARS], rest.strip()


class NewProposal(Composing):
    """The form of a new proposal. `head`: the branch to propose. `refs`: the branches and tags of the
    repository. `taken`: the numbers of the open proposals of the same branch, by base. Title and text begin
    with what the seals of the branch say."""

    ACTIONS = (
        Action("open", ("enter",), "change", "", "signed_in", footer=True),
        Action(
            "send", ("S", "ctrl+s"), "send", "svc pr create -t TITLE", "signed_in", True, "proposal.create"
        ),
        Action("write", ("E",), "text in $EDITOR", "", "signed_in"),
        Action("discard", ("D",), "discard", footer=True),
    )
    NOUN = FORM = "proposal"

    def __init__(
        self,
        repo: Repo,
        head: str,
        refs: Sequence[Ref],
        people: Sequence[str],
        begun: Mapping[str, Any] | None = None,
        taken: Mapping[str, int] = NONE_TAKEN,
    ) -> None:
        super().__init__(repo, people, begun)
        self.MORE = self._head = head
        self._taken = taken
        heads = {ref.name: ref.head for ref in refs if ref.type == "branch"}
        self._seal, self._heads = heads.get(head), heads
        self._branches = sorted(heads.keys() - {head}, key=lambda name: (name != repo.default_branch, name))
        self._seals: list[SealSummary] | None = None  # that the proposal has, the newest first
        self._files: ChangedPaths | None = None  # that it changes

    def begin(self) -> None:
        self._load_contents()

    @property
    def _base_seal(self) -> str | None:
        """The newest seal of the base."""
        return self._heads.get(self._base)

    def _load_contents(self) -> None:
        """Request the seals and the changed files of the proposal."""
        seal, base = self._seal, self._base_seal
        self._seals = self._files = None
        if seal is None or base is None:
            return

        def paint_seals(seals: list[SealSummary], at: float) -> None:
            if base == self._base_seal:
                self._seals = seals
                self.paint()

        def paint_files(files: ChangedPaths, at: float) -> None:
            if base == self._base_seal:
                self._files = files
                self.paint()

        self.svc.load(contents.ahead(self.repo.id, seal, base), paint_seals)
        self.svc.load(contents.changed_paths(self.repo.id, seal, base), paint_files)

    def contents_of(self, width: int) -> Sequence[tuple[Part, ...]]:
        """Returns a row for each seal of the proposal and for each file that it changes."""
        rows: list[tuple[Part, ...]] = []
        seals, files, now = self._seals, self._files, self.svc.clock()
        if seals is not None:
            more = "+" if len(seals) >= contents.RECENT else ""
            rows += [BLANK, (("Seals ", "title"), (f"{len(seals)}{more}", "dim"))]
            rows += [seal_line(seal, now) for seal in seals]
        if files is not None:
            more = "+" if files.more else ""
            rows += [BLANK, (("Files ", "title"), (f"{len(files.items)}{more}", "dim"))]
            for file in files.items:
                path, counts = safe(file.path), counts_of(file)
                room = width - 4 - sum(len(text) for text, _ in counts)
                path = path if cell_len(path) <= room else "…" + path[1 - room :]
                rows.append((sign_of(file), (f" {path}  ", "text"), *counts))
            rows += [(("no file differs", "dim"),)] if not files.items else []
        return rows

    def ask_first(self) -> None:
        """Let the user type the title. It begins with the title of the newest seal. The text of the proposal
        begins with what its seals say, as with `svc pr create --fill`."""
        if self.value("title") or self._seal is None or self._base_seal is None:
            super().ask_first()
            return

        def fill(seals: list[SealSummary], at: float) -> None:
            if not self.remains:
                return
            title, text = title_and_text([seal.message.strip() for seal in seals])
            if title and not self.value("title"):
                self._values = {**self._values, "title": title}
                if not self.value("body"):
                    self._values["body"] = text
                self.paint()
            self.open_prompt(lambda: self.ask_title(selected=True))

        self.hold_keys(READING_SECONDS)
        read = contents.ahead(self.repo.id, self._seal, self._base_seal)
        self.svc.load(read, fill, lambda error: fill([], 0.0))

    @property
    def _base(self) -> str:
        return self.value("base") or self.repo.default_branch

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        branches: tuple[Part, ...] = (
            (safe(self._base), "accent"),
            ("  ←  ", "dim"),
            (safe(self._head), "accent"),
        )
        number = self._taken.get(self._base)
        if number is not None:
            branches += ((f"  #{number} is open", "warn"),)
        draft: Part = ("✓ yes", "good") if self._values.get("draft") else ("no", "dim")
        return [
            self.title_field(),
            ("into", branches, self._choose_base),
            self.text_field(),
            ("draft", (draft,), lambda: self.put("draft", not self._values.get("draft"))),
            self.people_field("reviewers", "reviewers", "proposal.create"),
            self.labels_field(),
            self.people_field("people", "assignees", "issue.assign"),
        ]

    def facts_of(self) -> list[Part]:
        state: Part = ("◌ draft", "dim") if self._values.get("draft") else ("○ open", "good")
        reviewers = [(f"  ? @{safe(handle)}", "person") for handle in self.names("reviewers")]
        branches: Part = (f"  {safe(self._base)} ← {safe(self._head)}", "accent")
        return [state, branches, *self.author_parts(), *reviewers]

    def _choose_people(self, member: str, operation: str) -> None:
        if member != "reviewers":
            super()._choose_people(member, operation)
            return
        handles, files = self._people_for(member), self._files
        card = self._choose_several(member, reviewer_rows(handles, self._roles, None, 0), operation)
        if card is None or files is None or self._base_seal is None:
            return
        paths = [file.path for file in files.items if file.status != "added"]

        def paint(written: Written, at: float) -> None:
            if card.remains:
                card.offer(reviewer_rows(handles, self._roles, written, len(files.items)))

        self.svc.load(written_by(self.repo.id, self._base_seal, paths), paint)

    def _choose_base(self) -> None:
        from tui.screens.choose import Choose

        items = [Item(name, ((safe(name), "text"),), cuts_middle_of=0) for name in self._branches]
        self.app.push_screen(Choose("branch that it is for", items, self._put_base))

    def _put_base(self, name: str) -> None:
        self.put("base", name)
        self._load_contents()

    def do_send(self) -> None:
        """Put the new proposal into the outbox and send it."""
        number = self._taken.get(self._base)
        if number is not None:
            self.listed.go_to("into")
            self.say(f"#{number} proposes {self._head} for {self._base} already; choose another base", "warn")
            return
        values = {**self.written(), "head": self._head, "base": self._base}
        self.queue_new(proposals.CREATE, ProposalCreate, values)
