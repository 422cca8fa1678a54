"""Rules of forks. A fork copies a public repository with its history to another owner, without its
collaborators.
"""

from __future__ import annotations

import secrets

from msgspec.structs import replace

from localstore.core import names, tree
from localstore.core.errors import Conflict, Forbidden, NotFound, Unavailable
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.repo import ForkCreate, ForkPrivate, ParentRepo, Repo, Viewer
from relay.base.clock import now_ms
from relay.base.ids import new_branch_id, new_id, new_repo_id
from relay.caller import View, account_name
from relay.db import paging
from relay.db import ref as refs
from relay.db import seal as seals
from relay.db.collaboration import fork as rows
from relay.db.engine.database import Row, Tx
from relay.db.repo import RepoRow
from relay.domain.access import organisation_roles
from relay.domain.attention import social
from relay.domain.forking import holding
from relay.domain.history import sealed
from relay.domain.live import branch_base
from relay.domain.repository import repo as repos

FIRST_POLICY = 1  # number of the rules that a fork begins with


async def page(view: View, query: PageQuery) -> Page[Repo]:
    """Forks of a repository that the caller may see"""
    me = view.principal.account_id if view.principal else ""
    parent = ParentRepo(id=view.repo.id, full_name=view.repo.full_name)
    async with view.read() as tx:
        forks = await paging.read_page(
            tx, rows.LIST, query, lambda row: repos.shown_row(view, row), of_repo=view.repo.id, account=me
        )
        items = await social.of_several(tx, view, forks.items)
    return replace(forks, items=[replace(fork, parent=parent) for fork in items])


async def create(view: View, body: ForkCreate) -> Repo:
    """Fork a public repository to the caller or an organisation of the caller. The fork is public, and has
    the sealed branches and tags that the caller sees. Raises NotFound if the caller is not a member of the
    organisation. Also raises Forbidden, ForkPrivate, NameTaken, QuotaExceeded, TooLarge."""
    me = view.me
    if me.handle is None:
        raise Forbidden("a repository needs an owner with a handle; choose one first: svc login")
    _require_open(view)
    owner_id, owner = await repos.owner_of(view, body.owner) if body.owner else (me.account_id, me.handle)
    fork = _fork_row(view, owner_id, owner, body.name)
    async with view.read(snapshot=True) as tx:
        refs = await tx.all(rows.REFS, of_repo=view.repo.id)
    listed = [row for row in refs if not body.default_branch_only or _is_default(view.repo, row)]
    if len(listed) > limits.FORK_REFS:
        raise Conflict(
            f"{view.repo.full_name} has {len(listed)} branches and tags; a fork takes at most "
            f"{limits.FORK_REFS}: add --default-branch-only"
        )
    policy = view.policy
    heads = [row[2] for row in listed if row[2]]
    history = await holding.gather(view.node, view.repo.id, fork.id, heads, policy)
    async with view.write(account_name(owner_id)) as tx:
        if not await organisation_roles.acts_for(tx, owner_id, me.account_id):
            raise NotFound
        _require_open(view)  # it may have been hidden while the history was read
        if view.policy is not policy:
            raise Unavailable(f"what you see of {view.repo.full_name} changed meanwhile; fork it again")
        view.node.reserve.require()
        await repos.insert(tx, view, fork)
        await _copy_rules(tx, view, fork)
        await holding.acquire(tx, view.node, fork.id, history)
        for row in listed:
            await _insert_ref(tx, fork, row)
        await view.node.hub.announce(tx, view.repo.id, "fork.create", fork=fork.id)
    parent = ParentRepo(id=view.repo.id, full_name=view.repo.full_name)
    answer = replace(repos.to_wire(view, fork, "owner"), parent=parent)
    return replace(answer, watchers=1, viewer=Viewer(role="owner", watching=True))


def _fork_row(view: View, owner_id: str, owner: str, name: str | None) -> RepoRow:
    """Make the row of a fork. `name`: its name. If None, it has the name of the parent."""
    now, parent = now_ms(), view.repo
    return RepoRow(
        id=new_repo_id(),
        owner_id=owner_id,
        owner=owner,
        name=names.repository_name(name or parent.name),
        kind=parent.kind,
        class_="public_fork",
        description=parent.description,
        default_branch=parent.default_branch,
        state="active",
        parent_id=parent.id,
        tree_key=secrets.token_bytes(32),
        tree_key_id=new_id(),
        created_at=now,
        updated_at=now,
        partial=not sealed.shows_all(view),
    )


def _require_open(view: View) -> None:
    name = view.repo.full_name
    if not view.repo.public:
        raise ForkPrivate(
            f"{name} is private, and a fork is public; work on a branch of it: svc repo branch NAME -R {name}"
        )


def _is_default(repo: RepoRow, row: Row) -> bool:
    return (row[0], row[1]) == ("branch", repo.default_branch)


async def _insert_ref(tx: Tx, fork: RepoRow, row: Row) -> None:
    """Insert a branch or tag of the parent into the fork, at the same seal. A branch's live frontier begins
    with the tree that the fork has for this seal."""
    kind, name, head = row
    root = await seals.root_of(tx, fork.id, head) if kind == "branch" and head is not None else None
    based = root is not None and root != tree.EMPTY_ROOT
    start = branch_base.START if based else 0
    await tx.run(
        refs.INSERT,
        id=new_branch_id(),
        repo_id=fork.id,
        type=kind,
        name=name,
        head=head,
        seq=start,
        sealed_seq=start,
        base=root if based else None,
        created_at=fork.created_at,
        updated_at=fork.created_at,
        deleted_at=None,
    )


async def _copy_rules(tx: Tx, view: View, fork: RepoRow) -> None:
    """Copy the path rules of the parent into the fork. A partial fork gets no rules, because they would name
    hidden paths."""
    if view.repo.policy is None or view.policy is not None:
        return
    for path, visibility in await tx.all(rows.RULES, of_repo=view.repo.id):
        await tx.run(rows.RULE, repo_id=fork.id, path=path, visibility=visibility)
    # Numbers follow the changes of a repository's own rules: the parent's one would return in the fork.
    await tx.run(rows.SET_POLICY, of_repo=fork.id, number=FIRST_POLICY)
