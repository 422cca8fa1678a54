"""The one table of rights: every operation of a relay by its name.

    OPERATIONS["ref.create"].least  # "write"

docs/reference/rights.md marks the operations that have no route yet.
"""

from __future__ import annotations

from localstore.core.rights import elsewhere, repositories
from localstore.core.rights.operation import CALLERS, RANK, Operation, Role, Who

__all__ = ["CALLERS", "OPERATIONS", "RANK", "Operation", "Role", "Who"]

OPERATIONS: dict[str, Operation] = {
    operation.name: operation for operation in (*repositories.OPERATIONS, *elsewhere.OPERATIONS)
}
