"""What the preview of a run shows besides the run itself: its seal, the files that the seal changed, and the
proposals from its branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from localstore.core.model.history import SealSummary
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.repo import Repo
from localstore.core.model.run import Run
from tui import contents
from tui.blocks import Block
from tui.changed import counts_of, sign_of
from tui.contents import ChangedPaths
from tui.listed import Counts, ListedProposal
from tui.reads import Read
from tui.screens.proposal.words import checks_of, state_of
from tui.text import Part, brief, fold, safe

if TYPE_CHECKING:
    from tui.screens.split import Panes

Line = tuple[Part, ...]
T = TypeVar("T")
MESSAGE = 6  # rows of the message of a seal


class RunGlance:
    """Requests the seal, the changed files and the proposals for the runs that are previewed. Each is
    requested only once, until `forget` is called."""

    def __init__(self, panes: Panes) -> None:
        self._panes = panes
        self._seals: dict[str, SealSummary] = {}
        self._changes: dict[str, ChangedPaths] = {}
        self._proposals: dict[str, list[ListedProposal]] = {}  # the branch → what brings it
        self._requested: set[str] = set()

    def forget(self) -> None:
        """Forget which requests were made, so that everything is requested again."""
        self._requested.clear()

    def blocks(self, repo: Repo, run: Run) -> list[Block]:
        """Returns what is known about a run, as blocks (rows with a title). Data that is missing is
        requested, and the preview is made again when it arrives."""
        seal, branch = run.seal_id, run.branch
        self._request(contents.seal(repo.id, seal), lambda answer: self._learn(self._seals, seal, answer))
        self._request(
            contents.changed_paths(repo.id, seal), lambda answer: self._learn(self._changes, seal, answer)
        )
        if branch != repo.default_branch:
            self._request(
                contents.proposals(repo.id, ProposalQuery(state="all", head=branch)),
                lambda answer: self._learn(self._proposals, branch, answer),
            )
        now = self._panes.front.svc.clock()
        parts: list[Block] = []
        if (summary := self._seals.get(seal)) is not None:
            parts.append(Block("Seal", lambda wide: _seal_rows(summary, wide, now)))
        if changes := self._changes.get(seal):
            count = f"{len(changes.items)}{'+' if changes.more else ''}"
            parts.append(Block("What it changed", lambda wide: _change_rows(changes, wide), count))
        if proposals := self._proposals.get(branch):
            parts.append(
                Block("Proposals", lambda wide: _proposal_rows(proposals, wide), str(len(proposals)))
            )
        return parts

    def _request(self, read: Read[T], learn: Callable[[T], None]) -> None:
        if read.key not in self._requested:
            self._requested.add(read.key)
            self._panes.front.svc.load(read, lambda answer, at: learn(answer), lambda error: None)

    def _learn(self, answers: dict[str, T], key: str, answer: T) -> None:
        if answers.get(key) != answer:
            answers[key] = answer
            self._panes.renew()


def _seal_rows(seal: SealSummary, width: int, now: float) -> list[Line]:
    """Returns rows about a seal: its message, its author, its age, and its branch."""
    who = f"@{seal.provenance.who.handle or '?'}"
    role = "agent" if seal.provenance.who.kind == "agent" else "person"
    first, _, rest = seal.message.strip().partition("\n")
    rows = fold([(safe(first) or "without a message", "strong")], width)
    rows += [row for line in rest.strip().split("\n") if line for row in fold([(safe(line), "text")], width)]
    head = [
        (f"{seal.id[:12]}  ", "accent"),
        (f"{safe(who)} ", role),
        (f"{brief(seal.created_at, now)}  on {safe(seal.branch)}", "dim"),
    ]
    return [*rows[:MESSAGE], *fold(head, width)]


def _change_rows(changes: ChangedPaths, width: int) -> list[Line]:
    """Returns rows with the changed files and how many of their lines changed. The beginning of a path is cut
    off if the path is too long."""
    rows: list[Line] = []
    for file in changes.items:
        path, counts = safe(file.path), counts_of(file)
        room = max(8, width - sum(len(text) for text, _ in counts) - 3)
        path = path if len(path) <= room else "…" + path[1 - room :]
        rows.append((sign_of(file), (f" {path:<{room}} ", "text"), *counts))
    return [*rows, (("… and more", "dim"),)] if changes.more else rows


def _proposal_rows(proposals: list[ListedProposal], width: int) -> list[Line]:
    """Returns a row for each proposal, with its title, state, checks and base."""
    rows: list[Line] = []
    for proposal in proposals:
        rows += fold([(f"#{proposal.number} ", "accent"), (safe(proposal.title), "text")], width)
        checks: Counts = proposal.checks
        rows.append(
            (state_of(proposal), ("→ ", "dim"), (f"{safe(proposal.base)}  ", "dim"), checks_of(checks))
        )
    return rows
