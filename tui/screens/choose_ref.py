"""A card to choose a branch or tag. If there is room, the newest seals of the branch or tag under the cursor
are shown beside the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from localstore.core.model.history import SealSummary
from localstore.core.model.proposal import ProposalQuery
from localstore.core.model.ref import Ref
from tui import contents
from tui.branches import Standing, standings
from tui.listed import ListedProposal
from tui.screens.choose_beside import ChooseBeside
from tui.screens.code.comparison import ComparedRef, Comparison
from tui.screens.lists.glance import seal_line
from tui.screens.repo_page import RepoPage
from tui.text import Part, brief, cut_middle, safe
from tui.widgets.lines import Item, heading, sequence

Standings = Mapping[str, Standing]
Numbers = Mapping[str, int]  # branch → number of its open proposal
NO_STANDINGS: Standings = MappingProxyType({})
NO_NUMBERS: Numbers = MappingProxyType({})
NAME = 24  # columns of the name of a branch in the line of keys
WHO = 12  # characters of a handle


class ChooseRef(ChooseBeside):
    """A card with the branches and tags of a repository. They are sorted by age, the newest first, as soon as
    their ages are known."""

    LIST_SHARE = 56
    EMPTY = "no branch or tag"

    def __init__(self, of: RepoPage, chosen: Callable[[Ref], None]) -> None:
        self._longest = 0  # characters of the longest handle, so that what stands before it is aligned
        self._of, self._standings, self._numbers = of, NO_STANDINGS, NO_NUMBERS
        current = next((ref for ref in of.refs if ref.name == of.ref_name), None)
        super().__init__("branches and tags", self._rows(), chosen, current)

    def on_mount(self) -> None:
        # Textual calls that of `Choose` by itself; called here as well, it would open a second prompt.
        refs, client, repo_id = self._of.refs, self.svc.client, self._of.repo.id

        def work() -> None:
            standing = standings(client, repo_id, refs)
            self.svc.later(lambda: self._stand(standing))

        self.svc.run_worker(work, thread=True, group="branches", exclusive=True, exit_on_error=False)
        self.svc.load(contents.proposals(repo_id, ProposalQuery(state="open")), self._propose)
        self.call_after_refresh(self.rest)

    def _stand(self, standing: Standings) -> None:
        self._standings = standing
        self._longest = max((min(len(safe(seal.who)), WHO) for seal in standing.values()), default=0)
        self.paint()

    def _propose(self, proposals: Sequence[ListedProposal], at: float) -> None:
        self._numbers = {proposal.head: proposal.number for proposal in proposals}
        self.paint()

    def paint(self) -> None:
        if self.is_attached:
            rows = self._rows()
            self.listed.show(sequence(rows))
            self.fit(len(rows))

    # --- comparing

    @property
    def space_label(self) -> str:
        return f"compare with {cut_middle(safe(self._of.ref_name), NAME)}"

    def _marks(self) -> Callable[[], None]:
        return self._compare

    def _compare(self) -> None:
        """Compare the branch or tag under the cursor with the one that the repository is shown at."""
        lines = self.listed
        lines.ready()
        base = next((ref for ref in self._of.refs if ref.name == self._of.ref_name), None)
        ref = cast("Ref | None", lines.key)
        if ref is None or base is None:
            self.say("there are no two to compare", "warn")
        elif ref == base:
            self.say(f"{safe(ref.name)} is what is shown; move to another one to compare them", "warn")
        elif ref.head is None or base.head is None:
            self.say(f"{safe((base if ref.head else ref).name)} has no seal yet", "warn")
        else:
            sides = ComparedRef(base.name, base.type, base.head), ComparedRef(ref.name, ref.type, ref.head)
            self.app.push_screen(Comparison(self._of.repo, *sides))

    # --- rows

    def _rows(self) -> list[Item]:
        """Returns the rows: first the branches, then the tags. Both are sorted from the newest to the oldest.
        Those whose age is unknown come last."""
        newest = sorted(self._of.refs, key=self._age, reverse=True)
        rows: list[Item] = []
        for kind, name in (("branch", "Branches"), ("tag", "Tags")):
            kin = [ref for ref in newest if ref.type == kind]
            rows += [heading(name, len(kin)), *(self._row(ref) for ref in kin)] if kin else []
        return rows

    def _age(self, ref: Ref) -> str:
        """Returns when the seal at the head of a branch or tag was made, as an RFC 3339 time. Returns ""
        while that is unknown."""
        standing = self._standings.get(ref.head or "")
        return standing.at if standing is not None else ""

    def _row(self, ref: Ref) -> Item:
        current = ref.name == self._of.ref_name
        mark: Part = ("● ", "good") if current else ("  ", "text")
        number = self._numbers.get(ref.name) if ref.type == "branch" else None
        words: list[Part] = [mark, (safe(ref.name), "title" if current else "text")]
        if ref.default:
            words.append(("  default", "accent"))
        elif ref.protected:
            words.append(("  protected", "dim"))
        if number is not None:
            words.append((f"  ○ #{number}", "good"))
        return Item(ref, tuple(words), (*self._distance(ref), *self._newest(ref)), cuts_middle_of=1)

    def _newest(self, ref: Ref) -> tuple[Part, ...]:
        """Returns parts that say who made the seal at the head of a branch or tag, and how long ago."""
        if ref.head is None:
            return (("no seal yet", "dim"),)
        standing = self._standings.get(ref.head)
        if standing is None:
            return ((ref.head[:8], "dim"),)
        age = brief(standing.at, self._of.svc.clock())
        return ((f"@{safe(standing.who)[:WHO]:<{self._longest}}", "dim"), (f"{age:>5}", "dim"))

    def _distance(self, ref: Ref) -> tuple[Part, ...]:
        """Returns parts that say how many seals a branch is ahead of the default branch and behind it.
        Returns () for the default branch, for tags, and while the numbers are unknown."""
        standing = self._standings.get(ref.head or "")
        if ref.default or ref.type == "tag" or standing is None:
            return ()
        ahead = f"↑{standing.ahead}{'+' if standing.more else ''} " if standing.ahead else ""
        behind = f"↓{standing.behind} " if standing.behind else ""
        return ((ahead, "good"), (behind, "warn"))

    def preview_of(self, key: Hashable) -> None:
        ref = cast("Ref", key)
        top: list[tuple[Part, ...]] = [((safe(ref.name), "title"),)]
        number = self._numbers.get(ref.name)
        if number is not None:
            top.append(((f"proposal #{number}", "good"),))
        if ref.head is None:
            self.show_preview(key, "", [*top, (("nothing is sealed here yet", "dim"),)])
            return

        def paint(seals: list[SealSummary], at: float) -> None:
            now = self.svc.clock()
            self.show_preview(key, "", [*top, (), *(seal_line(seal, now) for seal in seals)])

        self.svc.load(contents.recent(self._of.repo.id, ref.name), paint)
