"""Finds the target of a switch or clone. It is a branch to work on, or a seal to read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec

from localstore.core.model.repo import Repo
from localstore.folder.link import RepoLink
from localstore.sync.transfer.fill import KnownFile
from svc.api.sync_transport import BranchTransport, SealTransport
from svc.flows.clone import CloneResult, clone
from svc.flows.place.folder import key_for, transport_of
from svc.flows.place.refs import resolve_ref
from svc.flows.place.where import Where
from svc.flows.switch import Target


def target_of(where: Where, link: RepoLink, typed: str) -> Target:
    """Return the target of a switch for the branch, tag or seal that the user typed. It is searched in the
    repository of `link`. Raises NotFound if there is none of that name."""
    repo = where.reader.repo.find_linked(link.repo_id, link.repo)
    ref = resolve_ref(where, repo, typed)
    if ref.kind == "branch":
        transport = BranchTransport(where.reader, link.repo_id, ref.name)
        return Target(ref.name, transport, key_for(where, repo))
    seal = ref.head or ""
    return Target(link.branch, SealTransport(where.reader, link.repo_id, link.branch, seal), None, seal)


def clone_into(
    where: Where, repo: Repo, branch: str, target: Path, shown_seal: str | None = None
) -> CloneResult:
    """Clone the newest seal of `branch` into the folder `target`. If `shown_seal` is given, this seal is
    cloned instead, read-only."""
    link = RepoLink(
        server=where.server,
        repo_id=repo.id,
        repo=repo.full_name,
        branch=branch,
        class_=repo.class_,
        seal=shown_seal or msgspec.UNSET,
    )
    transport = transport_of(where, link)
    transport.head()  # NotFound before anything is written
    key = key_for(where, repo) if shown_seal is None else None
    return clone(transport, where.home, link, target, key, where.progress, _known_files(where, repo))


def _known_files(where: Where, repo: Repo) -> Callable[[int], Iterable[KnownFile]]:
    """Return a function that finds files on this machine which may contain parts of a large file. It is
    called with the size of the large file. If the repository is one of models, the function returns the
    models of this machine. For any other repository it returns none."""
    if repo.kind not in ("model", "modelpack"):
        return lambda size: ()
    from localstore.models.place import llm_home  # seldom needed
    from localstore.models.store import Models
    from svc.flows.models.fetching import known_files

    return partial(known_files, Models(llm_home(where.environment)), note=where.note)
