"""A cache of line owners (which seal each line comes from) for filtered views of a repository. Owners for
whole views are stored in the database.
"""

from __future__ import annotations

from localstore.core.model.limits import MIB
from relay.base.recent import Recent

MOST_BYTES = 16 * MIB
EACH = 300  # bytes in memory of a key, about

FilteredKey = tuple[str, int, str, str, bool]
"""Repository, number of its path policy, seal, path; whether merges own what they brought. All filtered views
of a repository see the same."""


class FilteredOwners(Recent[FilteredKey, bytes]):
    """A cache that knows, for versions of files in filtered views, from which seal each line comes. The key
    names the version; the value is encoded."""

    def __init__(self) -> None:
        super().__init__(MOST_BYTES, lambda raw: EACH + len(raw))
