"""Protection rules of branches. A rule applies to all branches whose names match its pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from localstore.core import branch_pattern
from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Page, PageQuery, Sent
from localstore.core.model.limits import APPROVALS


class BranchProtected(Conflict):
    """A protection rule of the branch forbids the request. `rules`: the flags that forbid it; `patterns`: the
    patterns of the matching rules. If a merge lacks a requirement, NotMergeable is raised instead."""

    code = "branch_protected"


_Approvals = Annotated[int, msgspec.Meta(ge=0, le=APPROVALS)]


class ProtectionSet(Sent, frozen=True):
    """A whole protection rule. Flags that are left out are off. `required_approvals`: a number above 0
    requires a review. `fresh_approvals`: only approvals of the current change count. `require_resolution`:
    all threads must be resolved before a merge."""

    require_review: bool = False
    require_checks: bool = False
    lock_writes: bool = False
    lock_deletions: bool = False
    required_approvals: _Approvals = 0
    require_resolution: bool = False
    fresh_approvals: bool = False


class Protection(ProtectionSet, frozen=True, kw_only=True):
    """The protection rule for one pattern. A branch that matches the pattern can never be deleted, even if
    all flags are off."""

    pattern: str


STAY = "your edits stay here"  # begins what can be done with edits that a protected branch does not take
_WRITES = ("lock_writes", "require_review", "require_checks")
_ACTS = {"write": "is not edited or pushed to directly", "move": "is not moved", "create": "is not created"}


def matching(rules: Iterable[Protection], branch: str) -> list[Protection]:
    return [rule for rule in rules if branch_pattern.matches(rule.pattern, branch)]


def refusal(
    branch: str, rules: Sequence[Protection], act: Literal["write", "move", "create"]
) -> BranchProtected | None:
    """The error with which the protection rules of a branch refuse an act; None if they allow it. `act`: to
    write to the branch, to move it, or to create it."""
    flags = [flag for flag in _WRITES if any(_on(rule, flag) for rule in rules)]
    if not flags:
        return None
    way = "; choose a name that the rule does not match"
    if act != "create":
        way = (
            f" ({', '.join(flags)}): {STAY}; take them to a branch of their own with "
            f"svc repo branch NAME --from {branch} and svc switch NAME --merge"
        )
    patterns = [rule.pattern for rule in rules]
    return BranchProtected(
        f"{branch} is protected by the rule {patterns[0]} and {_ACTS[act]}{way}",
        branch=branch,
        patterns=patterns,
        rules=flags,
    )


def _on(rule: Protection, flag: str) -> bool:
    return bool(getattr(rule, flag)) or (flag == "require_review" and rule.required_approvals > 0)


_ONE = f"{REPO}/protections/{{pattern...}}"
LIST = Endpoint("GET", f"{REPO}/protections", query=PageQuery, returns=Page[Protection])
SET = Endpoint("PUT", _ONE, body=ProtectionSet, returns=Protection)
CLEAR: Endpoint[None] = Endpoint("DELETE", _ONE, status=204)
