"""Protection of branches, by patterns of their names."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.limits import APPROVALS
from localstore.core.model.base import Model, Page, PageQuery


class BranchProtected(Conflict):
    """A protection rule of the branch forbids this. `rules`: the flags that refuse, `patterns`: the matching
    rules. What a merge lacks is said by NotMergeable."""

    code = "branch_protected"


_Approvals = Annotated[int, msgspec.Meta(ge=0, le=APPROVALS)]


class ProtectionSet(Model, frozen=True):
    """A whole rule: absent flags are off. `required_approvals` above 0 implies review; with `fresh_approvals`
    only approvals of the current change count; with `require_resolution` every thread must be resolved before
    a merge."""

    require_review: bool = False
    require_checks: bool = False
    lock_writes: bool = False
    lock_deletions: bool = False
    required_approvals: _Approvals = 0
    require_resolution: bool = False
    fresh_approvals: bool = False


class Protection(ProtectionSet, frozen=True, kw_only=True):
    """The rule of one pattern. Branches that match it cannot be deleted, whatever its flags."""

    pattern: str


_ONE = f"{REPO}/protections/{{pattern...}}"
LIST = Endpoint("GET", f"{REPO}/protections", query=PageQuery, returns=Page[Protection])
SET = Endpoint("PUT", _ONE, body=ProtectionSet, returns=Protection)
CLEAR: Endpoint[None] = Endpoint("DELETE", _ONE, status=204)
