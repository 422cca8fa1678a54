"""The trees of a fork whose maker does not see all paths (`localstore.core.tree.partial`).

Each seal keeps its id, bytes and signature, and gets a separate tree for this fork. That tree lacks the
names, digests and sizes of everything hidden from the maker of the fork. In the fork, all code reads this
tree for every caller. So answers need no filtering, and later path rules of the fork's parent change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localstore.core import seal as seals
from localstore.core import tree
from localstore.core.errors import TooLarge
from localstore.core.model import limits
from localstore.core.tree.policy import Policy
from relay.base.batches import split_batches
from relay.db import repo as repos
from relay.db.collaboration import fork as rows
from relay.db.engine.database import Tx
from relay.memory import trees
from relay.memory.trees import Load
from relay.objects.store import FrameAt

BATCH = 200  # seals whose payloads are read together
WRITTEN_MOST = 256 * limits.MIB  # of directories that a fork gets of its own: they are held in memory


@dataclass(slots=True)
class Parts:
    """The partial trees of a fork. `roots`: the root of the partial tree of each seal, by seal id. `written`:
    new directories of these trees, by digest. `placed`: where these directories are stored durably."""

    roots: dict[str, bytes] = field(default_factory=dict)
    written: dict[bytes, bytes] = field(default_factory=dict)
    placed: Sequence[FrameAt] = ()

    def load(self, stored: Load) -> Load:
        """Make a function that loads directories. It takes new directories of the partial trees from memory,
        and loads others with the function `stored`."""

        async def either(digests: list[bytes]) -> Mapping[bytes, bytes]:
            in_memory = {digest: self.written[digest] for digest in digests if digest in self.written}
            rest = [digest for digest in digests if digest not in in_memory]
            return {**await stored(rest), **in_memory} if rest else in_memory

        return either


async def part_trees(
    tx: Tx, load: Load, source: str, roots: Mapping[str, tuple[bytes, bytes]], policy: Policy | None
) -> Parts:
    """Make the partial trees of seals under `policy`. `roots`: for each seal id, the root of the seal's tree
    in the repository `source`, and the root that was signed. Raises TooLarge if the trees need too many new
    directories."""
    parts = Parts({seal_id: root for seal_id, (root, signed) in roots.items() if root != signed})
    if policy is None:
        return parts
    keys = {repo_id: bytes(key) for repo_id, key in await tx.all(repos.KEYS, repo_id=source)}
    parting = tree.Parting(policy)
    for ids in split_batches(list(roots), BATCH, lambda _: 1):
        for seal_id, payload in await tx.all(rows.PAYLOADS, ids=ids):
            root, signed = roots[seal_id]
            key = keys[seals.decode(bytes(payload)).tree_key_id]
            visible_root = await trees.drive(tree.part(root, key, parting), load)
            if visible_root != signed:
                parts.roots[seal_id] = visible_root
        if sum(map(len, parting.written.values())) > WRITTEN_MOST:
            raise TooLarge(
                f"a fork of what you see of this history needs more than {WRITTEN_MOST} bytes of "
                "directories; ask its owner to let you write there, then fork it"
            )
    parts.written = parting.written
    return parts
