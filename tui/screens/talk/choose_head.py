"""A card to choose the branch to propose: first the branches that nobody proposed yet."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from localstore.core.model.history import SealSummary
from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from tui import contents
from tui.branches import Standing, standings
from tui.contents import ProposedHead
from tui.screens.base import READING_SECONDS
from tui.screens.choose_beside import ChooseBeside
from tui.screens.lists.glance import seal_line
from tui.text import Part, brief, fold, safe
from tui.widgets.lines import Item, Lines, heading, sequence

FREE, PROPOSED, USELESS = range(3)
HEADINGS = ("Not proposed yet", "Proposed", "Nothing to propose")
COUNT = 5  # columns of a number of seals
WHO = 12  # characters of a handle
ANSWERS = frozenset({"standings", "open", "merged"})


class State(NamedTuple):
    """What the user can do with a branch. `kind`: FREE (propose it), PROPOSED (it is proposed already) or
    USELESS (nothing). `number`: the number of its proposal. `word`: why there is nothing to propose."""

    kind: int
    number: int | None = None
    word: str = ""


def _own(proposed: Sequence[ProposedHead]) -> list[ProposedHead]:
    """Returns the proposals whose head is a branch of this repository."""
    return [proposal for proposal in proposed if not proposal.cross_repository]


class ChooseHead(ChooseBeside):
    """A card with the branches that can be proposed. `chosen`: called with the name of the chosen branch, and
    with the numbers of its open proposals by base. Branches with nothing to propose come last, and choosing
    one shows the reason."""

    LIST_SHARE = 56
    EMPTY = "no branch to propose"

    def __init__(
        self, repo: Repo, refs: Sequence[Ref], chosen: Callable[[str, Mapping[str, int]], None]
    ) -> None:
        self._repo = repo
        self._refs = {
            ref.name: ref for ref in refs if ref.type == "branch" and ref.name != repo.default_branch
        }
        self._all = refs
        self._standings: Mapping[str, Standing] = {}
        self._open: dict[str, dict[str, int]] = {}  # branch → base → number of the open proposal
        self._merged: dict[tuple[str, str], int] = {}  # branch and its newest seal → number of the proposal
        self._awaits = set(ANSWERS)
        self._asking = False  # whether what is painted was known before
        self._entered: str | None = None  # what was entered before all answers were there
        self._first: Hashable = None  # the key of the first row
        self._longest = 0  # characters of the longest handle
        super().__init__(
            "branch to propose", self._rows(), lambda name: chosen(str(name), self._numbers(str(name)))
        )

    def on_mount(self) -> None:
        # Textual calls that of `Choose` by itself; called here as well, it would open a second prompt.
        self._first = self._items[1].key if len(self._items) > 1 else None
        client, repo_id, refs = self.svc.client, self._repo.id, self._all

        def work() -> None:
            standing = standings(client, repo_id, refs)
            self.svc.later(lambda: self._stand(standing))

        self.svc.run_worker(work, thread=True, group="branches", exclusive=True, exit_on_error=False)
        self._asking = True
        opened, merged = (contents.proposed_heads(repo_id, state) for state in ("open", "merged"))
        self.svc.load(opened, self._paint_open, lambda error: self._answer("open"))
        self.svc.load(merged, self._paint_merged, lambda error: self._answer("merged"))
        self._asking = False
        self.call_after_refresh(self.rest)

    def _stand(self, standing: Mapping[str, Standing]) -> None:
        self._standings = standing
        self._longest = max((min(len(safe(seal.who)), WHO) for seal in standing.values()), default=0)
        self._answer("standings")

    def _paint_open(self, proposed: list[ProposedHead], at: float) -> None:
        self._open = {}
        for proposal in _own(proposed):
            self._open.setdefault(proposal.head, {})[proposal.base] = proposal.number
        self._answer("open")

    def _paint_merged(self, proposed: list[ProposedHead], at: float) -> None:
        oldest_first = reversed(_own(proposed))  # the newest one counts
        self._merged = {(proposal.head, proposal.head_seal): proposal.number for proposal in oldest_first}
        self._answer("merged")

    def _answer(self, name: str) -> None:
        """Called when the answer `name` of the server has arrived. Paints it. If the user has pressed enter
        while answers were missing and this is the last one, choose the branch now."""
        if not self.remains:
            return
        if not self._asking:
            self._awaits.discard(name)
        self.paint()
        if self._entered is not None and not self._awaits:
            typed, self._entered = self._entered, None
            self.say("")
            self._choose(self.listed, typed)
            self.release_keys()

    def paint(self) -> None:
        """Make the rows again, because more is known about the branches. If the cursor was on the first row,
        it goes to the row that is first now."""
        if self.remains:
            rows = self._rows()
            first = rows[1].key if len(rows) > 1 else None
            now = self.listed.key
            self.listed.show(sequence(rows), first if now == self._first else now)
            self._first = first
            self.fit(len(rows))

    # --- rows

    def _rows(self) -> list[Item]:
        states = {name: self._state(ref) for name, ref in self._refs.items()}
        newest = sorted(self._refs.values(), key=self._age, reverse=True)
        rows: list[Item] = []
        for kind, words in enumerate(HEADINGS):
            kin = [ref for ref in newest if states[ref.name].kind == kind]
            rows += (
                [heading(words, len(kin)), *(self._row(ref, states[ref.name]) for ref in kin)] if kin else []
            )
        return rows

    def _age(self, ref: Ref) -> tuple[str, str]:
        """Returns the key by which branches are sorted: (time of the newest seal, id of the branch). The time
        is "" while it is unknown. Newer branches have higher ids."""
        standing = self._standings.get(ref.head or "")
        return (standing.at if standing is not None else "", ref.id)

    def _state(self, ref: Ref) -> State:
        numbers = self._numbers(ref.name)
        if numbers:
            return State(PROPOSED, max(numbers.values()))
        if ref.head is None:
            return State(USELESS, word="no seal yet")
        merged = self._merged.get((ref.name, ref.head))
        if merged is not None:
            return State(USELESS, merged, "merged")
        standing = self._standings.get(ref.head)
        if standing is not None and standing.ahead == 0:
            return State(USELESS, word="nothing new")
        return State(FREE)

    def _numbers(self, name: str) -> Mapping[str, int]:
        """Returns the numbers of the open proposals of a branch, by base."""
        return self._open.get(name, {})

    def _row(self, ref: Ref, state: State) -> Item:
        standing = self._standings.get(ref.head or "")
        role = "dim" if state.kind == USELESS else "text"
        words: list[Part] = [(safe(ref.name), role)]
        right: list[Part] = []
        if state.word:
            number = f" #{state.number}" if state.number else ""
            right.append((f"{state.word}{number}  ", "dim"))
        elif state.number:
            right.append((f"○ #{state.number}  ", "good"))
        if standing is not None:
            if state.kind != USELESS:
                ahead = f"↑{standing.ahead}{'+' if standing.more else ''}" if standing.ahead else ""
                behind = f"↓{standing.behind}" if standing.behind else ""
                right += [(f"{ahead:<{COUNT}}", "good"), (f"{behind:<{COUNT}}", "warn")]
            age = brief(standing.at, self.svc.clock()) if self.is_attached else ""
            who = f"@{safe(standing.who)[:WHO]:<{self._longest}}"
            right += [(who, "dim"), (f"{age:>5}", "dim")]
        return Item(ref.name, tuple(words), tuple(right), cuts_middle_of=0)

    def preview_of(self, key: Hashable) -> None:
        ref = self._refs[str(key)]
        state, base = self._state(ref), next((other.head for other in self._all if other.default), None)
        top: list[tuple[Part, ...]] = [((safe(ref.name), "title"),)]
        if state.kind == PROPOSED:
            top.append(((f"proposed in #{state.number}", "good"),))
        elif state.kind == USELESS:
            top += fold([(safe(self._refusal(ref.name)), "warn")], self.preview_width)
        if ref.head is None or base is None:
            self.show_preview(key, "", top)
            return

        def paint(seals: list[SealSummary], at: float) -> None:
            now = self.svc.clock()
            self.show_preview(key, "", [*top, (), *(seal_line(seal, now) for seal in seals)])

        self.svc.load(contents.ahead(self._repo.id, ref.head, base), paint)

    # --- choosing

    def _refusal(self, name: str) -> str:
        """Returns a sentence that says why a branch cannot be proposed. Returns "" if it can."""
        state, base = self._state(self._refs[name]), self._repo.default_branch
        if state.kind != USELESS:
            return ""
        if state.number:
            return f"{name} is merged in #{state.number}; push to it, or choose another branch"
        if self._refs[name].head is None:
            return f"{name} has no seal yet; push to it, or choose another branch"
        return f"{base} has every seal of {name}; push to it, or choose another branch"

    def _choose(self, lines: Lines, typed: str) -> None:
        if self._awaits:
            self._entered = typed
            self.hold_keys(READING_SECONDS)
            self.say("◐ asking the server", "dim")
        else:
            super()._choose(lines, typed)

    def _take(self, key: Hashable) -> None:
        why = self._refusal(str(key))
        if not why:
            super()._take(key)
            return
        if self._prompt is None:
            self.do_filter(self.listed.sought)
        self.say(why, "warn")
