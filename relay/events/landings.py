"""Functions that other parts of the relay register to run in the transaction that moves the head of a branch.
Sealing calls them without knowing these parts. `relay.run.server` registers them before the node serves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from relay.db.engine.database import Tx

# The second argument is the `View` that moves the head, which is declared above this module.
Moved = Callable[[Tx, Any, str, str], Awaitable[None]]  # the branch's id, its new head
Landed = Callable[[Tx, Any, str, str], Awaitable[None]]  # what was prepared, the new head


class Landings:
    """The functions that one node calls when branches move or seals land. They are called in the order in
    which they were registered."""

    def __init__(self) -> None:
        self._moved: list[Moved] = []
        self._landed: list[Landed] = []

    def on_moved(self, function: Moved) -> None:
        """Register `function` to be called each time the head of a branch moves to a seal."""
        self._moved.append(function)

    def on_landed(self, function: Landed) -> None:
        """Register `function` to be called when seals land that were prepared for a subject, such as a
        proposal. The rows of the seals are already written when it is called."""
        self._landed.append(function)

    async def tell_moved(self, tx: Tx, view: Any, branch_id: str, head: str) -> None:
        """Call the functions of `on_moved`, because the head of this branch is now `head`."""
        for function in self._moved:
            await function(tx, view, branch_id, head)

    async def tell_landed(self, tx: Tx, view: Any, prepared_for: str | None, head: str) -> None:
        """Call the functions that were registered by `on_landed`, because prepared seals have become part of
        a branch. `prepared_for`: what they were prepared for, such as a proposal; None calls nothing. `head`:
        the last of the seals."""
        if prepared_for is not None:
            for function in self._landed:
                await function(tx, view, prepared_for, head)
