"""The subject of a merge that waits for its signature: what it merges, and how. It is stored with the
merge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Act = Literal["merge", "update", "preview"]
ACTS: tuple[Act, ...] = ("merge", "update", "preview")


@dataclass(slots=True, frozen=True)
class About:
    """The subject of a merge. `act`: merge (a proposal into its base), update (its base into its branch) or
    preview (a seal into a branch, without a proposal; `number` is 0). `theirs`: the seal that is merged.
    `strategy`: how it is merged (`localstore.core.model.merge.Strategy`)."""

    act: Act
    number: int
    theirs: str
    strategy: str

    def to_text(self) -> str:
        return f"{self.act} {self.number} {self.theirs} {self.strategy}"

    @classmethod
    def from_text(cls, text: str | None) -> About:
        """Read an About from the text that `to_text` has written."""
        act, number, theirs, strategy = (text or "").split(" ")
        (checked,) = (candidate for candidate in ACTS if candidate == act)
        return cls(checked, int(number), theirs, strategy)
