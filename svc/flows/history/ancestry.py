"""Checks the nearest common ancestors that the server names for a merge, from verified seals. Over bases that
the server invents, a merge would silently undo other people's work.

The ancestors of a seal are its parents, the seals that it was merged from, and their ancestors."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.model import history
from localstore.core.model.history import CompareQuery, Seal
from localstore.core.model.limits import PAGE_MAX
from localstore.core.seal import SealPayload
from localstore.sync import verify
from svc.api import Api

SEALS_MAX = 50_000  # seals that one check reads; two histories rarely differ by so many
PARENTS_AT_ONCE, SOURCES_AT_ONCE = PAGE_MAX, 10  # seals that one request reads; merged branches are short
_OURS, _THEIRS, _STALE = 1, 2, 4  # ancestor of the one side, of the other, of a common ancestor
_BOTH = _OURS | _THEIRS
_NINES = str.maketrans("0123456789", "9876543210")


class VerifiedSeals:
    """The seals of a repository, read from the server. Each is verified, and read only once."""

    def __init__(self, api: Api, repo_id: str) -> None:
        self._api, self._repo_id = api, repo_id
        self._received: dict[str, Seal] = {}  # not verified yet
        self._payloads: dict[str, SealPayload] = {}
        self._foreign: set[str] = set()  # of another repository, and verified only as ancestors
        self._above: dict[str, Sequence[str]] = {}

    def payload(self, seal: str) -> SealPayload:
        """Return the payload of a seal of this repository. Raises ServerMisbehaved if it is of another one,
        unless the server says that it was made there."""
        if seal not in self._payloads or seal in self._foreign:
            received = self._received.pop(seal, None) or self._api.history.seal(self._repo_id, seal)
            self._payloads[seal] = verify.seal(received, seal, self._repo_id)
            self._foreign.discard(seal)
        return self._payloads[seal]

    def ancestor(self, seal: str, at_once: int = PARENTS_AT_ONCE) -> SealPayload:
        """Return the payload of a seal that a verified seal names. It may be of another repository: the one
        that was forked. The request for it reads up to `at_once` seals of its history."""
        if seal not in self._payloads:
            if seal not in self._received:
                self._read_history(seal, at_once)
            payload = verify.seal(self._received.pop(seal), seal, self._repo_id, named=True)
            self._payloads[seal] = payload
            if payload.repo_id != self._repo_id:
                self._foreign.add(seal)
        return self._payloads[seal]

    def nearest_common(self, ours: str, theirs: str) -> set[str]:
        """Return the nearest common ancestors of two seals. If clocks were wrong when seals were made, the
        result can also have ancestors of the nearest ones.

        Younger seals are visited first, which is only a guess: a seal whose mark changes is visited again.
        The search ends when all seals that are left are ancestors of a common ancestor."""
        marks = {ours: _OURS}
        marks[theirs] = marks.get(theirs, 0) | _THEIRS
        queue = _Queue(self)
        for tip, mark in marks.items():
            queue.put(tip, mark)
        while (seal := queue.pop()) is not None:
            mark = marks[seal] | (_STALE if marks[seal] & _BOTH == _BOTH else 0)
            for above in self.above(seal):
                before = marks.get(above, 0)
                if before | mark != before:
                    marks[above] = before | mark
                    queue.put(above, marks[above])
        return {seal for seal, mark in marks.items() if mark == _BOTH}

    def is_ancestor(self, seal: str, of: Sequence[str]) -> bool:
        """Whether a seal is one of the seals `of`, or an ancestor of one of them."""
        visited, waiting = set(of), list(of)
        while waiting and seal not in visited:
            for above in self.above(waiting.pop()):
                if above not in visited:
                    visited.add(above)
                    waiting.append(above)
        return seal in visited

    def above(self, seal: str) -> Sequence[str]:
        """Return the ids of a seal's parents and of the seals that it was merged from. Of the latter, those
        that the repository does not have are left out. Raises ServerMisbehaved after SEALS_MAX seals."""
        if seal not in self._above:
            if len(self._above) >= SEALS_MAX:
                raise ServerMisbehaved(
                    f"the two histories differ by more than {SEALS_MAX:,} seals, too many to check a merge "
                    "here; nothing was merged"
                )
            payload = self.ancestor(seal)
            merge = payload.provenance.merge
            sources = [source for source in merge.sources if self._is_held(source)] if merge else []
            self._above[seal] = list(dict.fromkeys([*payload.parents, *sources]))
        return self._above[seal]

    def is_walked(self, seal: str) -> bool:
        """Whether `above` answers for this seal without a request."""
        return seal in self._above

    def _is_held(self, source: str) -> bool:
        try:
            self.ancestor(source, SOURCES_AT_ONCE)
        except NotFound:
            return False
        return True

    def _read_history(self, seal: str, limit: int) -> None:
        """Read a seal and at most `limit - 1` more seals of its history."""
        for received in self._api.history.log(self._repo_id, seal, limit):
            if received.id not in self._payloads:
                self._received[received.id] = received
        if seal not in self._received:
            raise ServerMisbehaved(f"asked for the history of seal {seal[:12]}, got another one")


class _Queue:
    """Seals to visit, the youngest first."""

    def __init__(self, seals: VerifiedSeals) -> None:
        self._seals = seals
        self._heap: list[tuple[str, str]] = []  # (time with each digit d as 9 - d, id)
        self._waiting: dict[str, bool] = {}  # id → whether it is an ancestor of a common ancestor
        self._undecided = 0

    def put(self, seal: str, mark: int) -> None:
        stale = bool(mark & _STALE)
        before = self._waiting.get(seal)
        if before is None:
            time = self._seals.ancestor(seal).created_at
            heapq.heappush(self._heap, (time.translate(_NINES), seal))
        self._undecided += (not stale) - (before is False)
        self._waiting[seal] = stale

    def pop(self) -> str | None:
        """Return the next seal to visit; None if the rest can change nothing, or only by more requests."""
        while self._heap:
            _, seal = heapq.heappop(self._heap)
            stale = self._waiting.pop(seal)
            self._undecided -= not stale
            if self._undecided or not stale or self._seals.is_walked(seal):
                return seal
        return None


def require_bases(seals: VerifiedSeals, ours: str, theirs: str, bases: Sequence[str]) -> None:
    """Raise ServerMisbehaved unless `bases` are the nearest common ancestors of the two seals. If histories
    crossed, an older common ancestor may be among them: a merge over several bases takes only what all of
    them give alike."""
    nearest = seals.nearest_common(ours, theirs)
    missing = nearest.difference(bases)
    if not nearest.issuperset(bases) or not all(seals.is_ancestor(seal, bases) for seal in missing):
        raise ServerMisbehaved(
            "the server named a merge base that is not the nearest common seal; nothing was merged"
        )


def find_bases(api: Api, repo_id: str, ours: str, theirs: str) -> list[str]:
    """Return the nearest common ancestors of two seals, as the server names them and `require_bases` checks
    them."""
    query = CompareQuery(base=ours, head=theirs, limit=0)
    bases = api.send(history.COMPARE, query=query, id=repo_id).merge_bases
    require_bases(VerifiedSeals(api, repo_id), ours, theirs, bases)
    return bases
