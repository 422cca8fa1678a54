"""Which merges that are signed in advance land at once because a rule of a branch, or the list of required
checks, asks for less.

    freed = find_freed(read_waiting(api, repo_id), before, before.with_rule("main", None))
    say_freed(freed)  # "#12 waits with auto merge and merges into main at once"
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from localstore.core.model import check as checks
from localstore.core.model import limits
from localstore.core.model import proposal as proposals
from localstore.core.model import protection as protections
from localstore.core.model.protection import Protection, ProtectionSet, matching
from localstore.core.obstacles import Standing, count_verdicts, find_obstacles
from svc.api import Api

READ = 500  # open proposals that are looked at, the newest first
LOOKS, PAUSE = 20, 0.25  # looks at whether merges have landed, and seconds between two of them


class Waiting(msgspec.Struct, frozen=True):
    """An open proposal whose merge is signed in advance. `standing`: its reviews and threads. `passed`: the
    names of the checks that have passed on its head, in lower case."""

    number: int
    title: str
    base: str
    standing: Standing
    passed: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True):
    """What a repository asks of merges: its protection rules, and the names of its required checks."""

    rules: Sequence[Protection]
    required: Collection[str]

    def with_rule(self, pattern: str, rule: ProtectionSet | None) -> Asked:
        """Returns the same with another rule for this pattern. None: without one."""
        rules = [other for other in self.rules if other.pattern != pattern]
        if rule is not None:
            values = {name: getattr(rule, name) for name in ProtectionSet.__struct_fields__}
            rules.append(Protection(pattern=pattern, **values))
        return Asked(rules, self.required)

    def with_checks(self, required: Collection[str]) -> Asked:
        return Asked(self.rules, required)


class Freed(msgspec.Struct, frozen=True):
    """A merge that lands at once. `ended`: numbers of other proposals for the same branch, whose signed
    merges end because the branch has moved then."""

    number: int
    title: str
    base: str
    ended: tuple[int, ...] = ()


def read_asked(api: Api, repo_id: str) -> Asked:
    rules = list(api.items(protections.LIST, limit=limits.PROTECTIONS, id=repo_id))
    known_checks = api.items(checks.LIST, limit=limits.CHECKS_KNOWN, id=repo_id)
    return Asked(rules, [check.name for check in known_checks if check.enabled])


def read_waiting(api: Api, repo_id: str) -> list[Waiting]:
    """Returns the open proposals whose merges are signed in advance. A draft is not among them: its merge
    waits whatever a rule says."""
    waiting = list[Waiting]()
    for proposal in api.items(proposals.LIST, limit=READ, id=repo_id):
        if proposal.auto_merge is None or proposal.draft:
            continue
        of_head = api.send(checks.OF_SEAL, id=repo_id, seal_id=proposal.head_seal).items
        passed = tuple(check.name.casefold() for check in of_head if check.state in ("pass", "skip"))
        standing = count_verdicts(proposal.reviews, False, proposal.threads.open)
        waiting.append(Waiting(proposal.number, proposal.title, proposal.base, standing, passed))
    return sorted(waiting, key=lambda proposal: proposal.number)


def find_freed(waiting: Iterable[Waiting], before: Asked, after: Asked) -> list[Freed]:
    """Returns the merges that are blocked before a change of what is asked, and no longer after it. The
    server lands the lowest number first. That moves the branch, so it ends the other merges for it."""
    of_bases: dict[str, list[Waiting]] = {}
    for proposal in waiting:
        of_bases.setdefault(proposal.base, []).append(proposal)
    freed = list[Freed]()
    for base, candidates in of_bases.items():
        blocked = [proposal for proposal in candidates if _is_blocked(proposal, before)]
        first = next((proposal for proposal in blocked if not _is_blocked(proposal, after)), None)
        if first is not None:
            ended = tuple(proposal.number for proposal in candidates if proposal is not first)
            freed.append(Freed(first.number, first.title, base, ended))
    return freed


def asks_less(before: Asked, after: Asked) -> bool:
    """Whether a change takes away something that merges may wait for: a rule, a part of one, or a check."""
    rules = {rule.pattern: rule for rule in after.rules}
    for rule in before.rules:
        now = rules.get(rule.pattern, ProtectionSet())
        if any(getattr(now, name) < getattr(rule, name) for name in ProtectionSet.__struct_fields__):
            return True
    return not {*before.required} <= {*after.required}


def _is_blocked(waiting: Waiting, demands: Asked) -> bool:
    is_passed = all(name.casefold() in waiting.passed for name in demands.required)
    standing = replace(waiting.standing, checks=is_passed)
    return bool(find_obstacles(matching(demands.rules, waiting.base), standing))


def say_freed(freed: Sequence[Freed]) -> str:
    """Returns a sentence about each merge that lands at once. Returns "" if there is none."""
    return " ".join(f"{words}." for words in map(_say, freed))


def _say(freed: Freed) -> str:
    words = f"#{freed.number} waits with auto merge and merges into {freed.base} at once"
    if not freed.ended:
        return words
    numbers = _join([f"#{number}" for number in freed.ended])
    have = "has" if len(freed.ended) == 1 else "have"
    return f"{words}, and {numbers} then {have} to be merged again, because {freed.base} has moved"


def _join(words: Sequence[str]) -> str:
    *firsts, last = words
    return f"{', '.join(firsts)} and {last}" if firsts else last


def wait_for_merges(api: Api, repo_id: str, freed: Sequence[Freed]) -> list[Freed]:
    """Wait a few seconds until these merges have landed. Returns those that have."""
    open_merges, landed = list(freed), list[Freed]()
    for look in range(LOOKS):
        for merge in list(open_merges):
            proposal = api.send(proposals.GET, id=repo_id, n=str(merge.number))
            if proposal.state == "merged":
                landed.append(merge)
            if proposal.state == "merged" or proposal.auto_merge is None:
                open_merges.remove(merge)
        if not open_merges:
            break
        if look + 1 < LOOKS:
            time.sleep(PAUSE)
    return landed


def say_merged(freed: Sequence[Freed], landed: Sequence[Freed]) -> str:
    """Returns which merges have landed, which have not yet, and what has to be merged again. `landed`: those
    that have landed."""
    words = [f"#{merge.number} ({merge.title}) merged into {merge.base}" for merge in landed]
    again = [f"#{number}" for merge in landed for number in merge.ended]
    numbers = [f"#{merge.number}" for merge in freed if merge not in landed]
    if numbers:
        words.append(f"{_join(numbers)} {'has' if len(numbers) == 1 else 'have'} not merged yet")
    if again:
        words.append(f"{_join(again)} {'has' if len(again) == 1 else 'have'} to be merged again")
    return "; ".join(words)
