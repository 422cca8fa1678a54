"""What must hold when a history has ended, whatever happened in it. Each check raises Broken saying what does
not hold."""

from __future__ import annotations

from pathlib import Path

from localstore.core import seal as seals
from localstore.core.encoding import digest, unb64u, unhex
from localstore.core.model import history
from localstore.core.model import ref as refs
from localstore.core.model.history import Seal, TreeQuery
from localstore.core.tree import TreeEntry, root_digest
from localstore.folder.link import read_repo
from svc.api import Api, connect
from svc.http.session import Sessions
from tests.campaign.person import all_words, temporary, words
from tests.campaign.world import Broken, Machine, Node

Files = dict[str, bytes]


def no_word_twice(machine: Machine) -> None:
    for path, data in machine.files().items():
        double = [word for word, times in words(data).items() if times > 1]
        if double:
            raise Broken(f"{machine.name}: {path} holds {double[:3]} twice")


def nothing_strange(machine: Machine, written: set[bytes]) -> None:
    """No text holds a word that nobody wrote."""
    for path, data in machine.files().items():
        strange = all_words(data) - written
        if strange:
            raise Broken(f"{machine.name}: {path} holds {sorted(strange)[:3]}, which nobody wrote")


def converged(machines: list[Machine], repo: str, branch: str, copy: Path) -> Files:
    """Every folder holds what a clone into `copy` holds, and `.svc` its two files; that tree."""
    machines[0].ok("repo", "clone", repo, str(copy), "-b", branch, where=copy.parent)
    clone = Machine.__new__(Machine)
    clone.folder = copy
    expected = clone.files()
    for machine in machines:
        found = machine.files()
        if found != expected:
            wrong = sorted(path for path in {*found, *expected} if found.get(path) != expected.get(path))
            raise Broken(f"{branch}: {machine.name} differs from the clone in {wrong[:5]}")
        strange = list(filter(temporary, found))
        if strange:
            raise Broken(f"{machine.name} still has {strange}")
        links = sorted(path.name for path in (machine.folder / ".svc").iterdir())
        if links != [".gitignore", "id", "repo.json", "state.json"]:
            raise Broken(f"{machine.name}: .svc holds {links}")
    return expected


def chain(machine: Machine, branch: str, tree: Files) -> set[str]:
    """Every seal of the branch verifies, names its parent and has the tree that it says; the newest has
    `tree`. The ids of the seals."""
    repo_id = read_repo(machine.folder).repo_id
    api = connect(machine.node.address, Sessions(machine.home))
    found: set[str] = set()
    try:
        tip = wanted = api.send(refs.GET, id=repo_id, type="branch", name=branch).head
        while wanted is not None:
            one = api.history.seal(repo_id, wanted)
            parents = _verified(one, wanted, repo_id)
            sealed = _sealed_tree(api, repo_id, one)
            if wanted == tip and {path: digest(data) for path, data in tree.items()} != sealed:
                raise Broken(f"the clone of {branch} is not the tree of {wanted}")
            found.add(one.id)
            wanted = parents[0] if parents else None
    finally:
        api.close()
    return found


def _verified(one: Seal, wanted: str, repo_id: str) -> tuple[str, ...]:
    """The parents that the seal's signed payload names."""
    raw = unb64u(one.payload)
    payload = seals.decode(raw)
    seals.verify(raw, unb64u(one.signature.value, 64), unb64u(one.key.public_key, 32))
    if one.id != wanted or seals.seal_id(raw) != wanted or payload.repo_id != repo_id:
        raise Broken(f"seal {wanted} is not what it says")
    return tuple(payload.parents)


def _sealed_tree(api: Api, repo_id: str, one: Seal) -> dict[str, bytes]:
    """Path → digest in the seal's tree, which has the root that the payload names."""
    tree = api.send(history.TREE, query=TreeQuery(recursive=True), id=repo_id, sha=one.id)
    entries = {e.path: TreeEntry(e.kind, unhex(e.blake3), e.size) for e in tree.entries if e.kind != "dir"}
    assert tree.tree_key is not None
    if (
        root_digest(entries, unb64u(tree.tree_key, 32)).hex()
        != seals.decode(unb64u(one.payload)).content_digest
    ):
        raise Broken(f"the tree of seal {one.id} is not the sealed one")
    return {path: entry.digest for path, entry in entries.items()}


def bounded(node: Node) -> None:
    """At most two ends of older epochs stay for each lane."""
    counts = node.rows("SELECT count(*) FROM lane_final GROUP BY branch_id, gen")
    if any(count > 2 for (count,) in counts):
        raise Broken("more ends of older epochs are kept than two")
