"""The one table of rights: every operation of a relay by its name.

    OPERATIONS["ref.create"].least  # "write"

An operation without a route is to come; `tests/relay/test_rights_table.py` lists those.
"""

from __future__ import annotations

from localstore.core.rights import elsewhere, repositories
from localstore.core.rights.operation import CALLERS, RANK, Operation, Role, Who

__all__ = ["CALLERS", "OPERATIONS", "RANK", "Operation", "Role", "Who"]

OPERATIONS: dict[str, Operation] = {
    one.name: one for one in (*repositories.OPERATIONS, *elsewhere.OPERATIONS)
}
