"""Rules of repositories: names, classes, states. Only the owner may change the settings of a repository."""

from __future__ import annotations

import secrets
from functools import partial

from msgspec.structs import replace

from localstore.core import names
from localstore.core.errors import Conflict, Forbidden, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.repo import (
    Class,
    ClassImmutable,
    Deleted,
    ForkIsPublic,
    NameTaken,
    ParentRepo,
    Repo,
    RepoCreate,
    RepoPatch,
    RepoQuery,
    Viewer,
)
from localstore.core.model.rights import RANK
from localstore.core.model.seal import E2eeUnavailable
from relay.base import git
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_branch_id, new_id, new_repo_id
from relay.caller import Caller, View, account_name, repo_name
from relay.capacity import quota
from relay.db import paging
from relay.db import ref as refs
from relay.db import repo as rows
from relay.db.engine.database import Row, Tx, UniqueViolation
from relay.db.repo import RepoRow, Role
from relay.domain.access import organisation as organisations
from relay.domain.access import organisation_roles
from relay.domain.attention import social
from relay.domain.forking.parent import parent_of
from relay.domain.proposal import elsewhere
from relay.node import Node

ALIAS_MS = limits.ALIAS * 1000


async def create(caller: Caller, body: RepoCreate) -> Repo:
    """Create a repository with its default branch, which has no seal yet, and a new tree key."""
    me = caller.me
    if me.handle is None:
        raise Forbidden("a repository needs an owner with a handle; choose one first: svc login")
    owner_id, owner = await owner_of(caller, body.owner) if body.owner else (me.account_id, me.handle)
    new = _new_row(owner_id, owner, body)
    async with caller.write(account_name(owner_id)) as tx:
        if not await organisation_roles.acts_for(tx, owner_id, me.account_id):
            raise NotFound
        caller.node.reserve.require()
        await insert(tx, caller, new)
        await _insert_branch(tx, new)
    return replace(to_wire(caller, new, "owner"), watchers=1, viewer=Viewer(role="owner", watching=True))


async def insert(tx: Tx, caller: Caller, new: RepoRow) -> None:
    """Insert a new repository of the caller, or of an organisation of the caller, without branches. Raises
    NameTaken and QuotaExceeded."""
    await _claim_name(tx, new)
    try:
        await tx.run(rows.INSERT, **_columns(new))
    except UniqueViolation:
        raise NameTaken(f"there is already a repository {new.full_name}") from None
    await quota.count_repository(tx, new.owner_id, new.id, caller.node.config.quota)
    await organisation_roles.grant_roles_to_members(tx, new.id)
    await social.watch_own(tx, new.id, caller.me.account_id)
    await caller.node.hub.announce(tx, new.id, "repo.create", name=new.name)


async def get(view: View) -> Repo:
    """One repository"""
    if view.repo.parent_id is None:
        answer = to_wire(view, view.repo, view.role)
    else:
        async with view.read() as tx:
            answer = await _to_wire_with_parent(tx, view, view.repo, view.role)
    return await social.of_one(view, answer)


async def page(caller: Caller, query: RepoQuery) -> Page[Repo]:
    """Repositories that the caller may see

    With `owner` they are sorted by name, else newest first. With `mine`, only repositories in which the
    caller has a role.
    """
    me = caller.principal.account_id if caller.principal else ""
    owner_id = await _owner_id(caller, query.owner)
    to_wire = partial(shown_row, caller)
    async with caller.read() as tx:
        if query.state == "deleted":
            return await _page_of_deleted(tx, caller, owner_id, query)
        if query.owner is None:
            if query.name is not None:
                raise Invalid("name is only read together with owner", pointer="/name")
            repos = await paging.read_page(
                tx, rows.MINE if query.mine else rows.ALL, query, to_wire, account=me
            )
        elif query.name is not None:  # under a former handle of the owner's too
            repo = await _find_by_name(tx, caller, query.owner, query.name)
            repos = Page(items=[repo] if repo else [])
        elif owner_id is None:
            return Page(items=[])
        else:
            repos = await paging.read_page(tx, rows.OF_OWNER, query, to_wire, account=me, owner_id=owner_id)
        return replace(repos, items=await social.of_several(tx, caller, repos.items))


async def edit(view: View, patch: RepoPatch) -> Repo:
    """Change settings, for the owner only

    An archived repository cannot be changed before it is unarchived.
    """
    if patch.name is not None:
        names.repository_name(patch.name)
    if patch.description is not None:
        _description(patch.description)
    async with view.write(account_name(view.repo.owner_id)) as tx:  # locks the owner's names
        old = view.repo
        _check_archived(view, patch)
        new_name = old.name if patch.name is None else names.repository_name(patch.name)
        new_class = _class_for(old, patch.visibility)
        description = old.description if patch.description is None else patch.description
        state = old.state if patch.archived is None else ("archived" if patch.archived else "active")
        branch = await _default_branch(tx, old, patch.default_branch)
        now = now_ms()
        if new_name != old.name:
            await _rename(tx, old, new_name, now)
        try:
            await tx.run(
                rows.EDIT,
                repo_id=old.id,
                new_name=new_name,
                new_description=description,
                new_default_branch=branch,
                new_class=new_class,
                new_kind=patch.kind or old.kind,
                new_state=state,
                now=now,
            )
        except UniqueViolation:
            raise NameTaken(f"there is already a repository {old.owner}/{new_name}") from None
        await view.node.hub.announce(
            tx,
            old.id,
            "repo.update",
            changed=_names_changed(patch),
            name=new_name,
            class_=new_class,
            state=state,
        )
        row = await tx.one(rows.VISIBLE, id=old.id, account=view.me.account_id)
        if row is None:
            raise NotFound
        return await _to_wire_with_parent(tx, view, rows.to_row(row), view.role_of(row))


async def delete(view: View) -> Deleted:
    """Delete a repository; it can be restored for 30 days

    It is hidden at once; its name stays reserved.
    """
    now = now_ms()
    purge_at = now + limits.PURGE_WINDOW * 1000
    async with view.write() as tx:
        if not await tx.run(rows.DELETE, repo_id=view.repo.id, now=now, purge=purge_at):
            raise NotFound
        await quota.delete(tx, view.repo.id)
        await elsewhere.repository_gone(tx, view)
        await view.node.hub.announce(tx, view.repo.id, "repo.delete")
    return Deleted(restore_id=view.repo.id, purge_at=rfc3339(purge_at))


async def restore(caller: Caller, repo_id: str) -> Repo:
    """Restore a deleted repository

    It gets the state from before the deletion. Only the owner may restore it. If an organisation is the
    owner, its admins may. Raises NotFound for all others, and for everybody after 30 days.
    """
    me = caller.me.account_id
    async with caller.write(repo_name(repo_id)) as tx:
        if not await tx.run(rows.RESTORE, repo_id=repo_id, account=me, now=now_ms()):
            raise NotFound
        await quota.restore(tx, repo_id)
        await caller.node.hub.announce(tx, repo_id, "repo.restore")
        row = await tx.one(rows.VISIBLE, id=repo_id, account=me)
        if row is None:
            raise NotFound
        return await _to_wire_with_parent(tx, caller, rows.to_row(row), caller.role_of(row))


async def find(tx: Tx, caller: Caller, owner: str, name: str) -> tuple[RepoRow, Role | None] | None:
    """Find the repository at OWNER/NAME, which may be a name from before a rename. Returns (repository, role
    of the caller), or None if the caller may not see it."""
    me = caller.principal.account_id if caller.principal else ""
    row = await tx.one(rows.BY_NAME, owner=owner, name=name, account=me)
    if row is None:
        row = await tx.one(rows.BY_ALIAS, owner=owner, name=name, account=me, now=now_ms())
    return None if row is None else (rows.to_row(row), caller.role_of(row))


def shown_row(caller: Caller, row: Row) -> Repo:
    """Convert a row of a list to a repository in the form that answers have. The parent of a fork is left
    out; only reading a single repository includes it."""
    return to_wire(caller, rows.to_row(row), caller.role_of(row))


# --- creation


async def owner_of(caller: Caller, named: str) -> tuple[str, str]:
    """Find the owner for a new repository: the caller, or the organisation `named` if the caller acts for it.
    Returns (id, handle). Raises NotFound if the caller is not a member of the organisation."""
    if named.removeprefix("@").lower() in ("me", caller.me.handle):
        return caller.me.account_id, str(caller.me.handle)
    async with caller.read() as tx:
        org = await organisations.admin_of(tx, caller, named)
    return org.id, org.handle


def _new_row(owner_id: str, handle: str, body: RepoCreate) -> RepoRow:
    now = now_ms()
    return RepoRow(
        id=new_repo_id(),
        owner_id=owner_id,
        owner=handle,
        name=names.repository_name(body.name),
        kind=body.kind,
        class_=_class_of(body),
        description=_description(body.description),
        default_branch=names.ref_name(body.default_branch),
        state="active",
        parent_id=None,
        tree_key=secrets.token_bytes(32),
        tree_key_id=new_id(),
        created_at=now,
        updated_at=now,
    )


def _class_of(body: RepoCreate) -> Class:
    implied: Class | None = None
    if body.visibility is not None:
        implied = "published_public" if body.visibility == "public" else "private_plaintext"
    class_ = body.class_ or implied or "private_plaintext"
    if class_ == "private_e2ee":
        raise E2eeUnavailable(
            "end-to-end encrypted repositories need the mode-5 processes, and this node does not run them; "
            "see node.e2ee of /api/v1/client-config"
        )
    if class_ == "public_fork":
        raise Invalid("a fork is made from a repository, by POST to its forks", pointer="/class")
    if implied is not None and implied != class_:
        raise Invalid(f"class {class_} and visibility {body.visibility} disagree", pointer="/visibility")
    return class_


def _description(text: str) -> str:
    if "\0" in text:
        raise Invalid("a description must not contain NUL", pointer="/description")
    return text


async def _claim_name(tx: Tx, new: RepoRow) -> None:
    """Raise NameTaken if an alias (the old name of a renamed repository) reserves the name for another
    repository. An alias that has expired, or that belongs to this repository, is deleted."""
    holder = await tx.value(rows.ALIAS_OF, owner=new.owner, name=new.name, now=now_ms())
    if holder is not None and holder != new.id:
        raise NameTaken(f"{new.full_name} was renamed a short while ago and its old name is reserved")
    await tx.run(rows.ALIAS_DROP, owner=new.owner, name=new.name)


def _columns(new: RepoRow) -> dict[str, object]:
    return {
        "id": new.id,
        "owner_id": new.owner_id,
        "name": new.name,
        "kind": new.kind,
        "class": new.class_,
        "description": new.description,
        "default_branch": new.default_branch,
        "state": new.state,
        "resume_state": None,
        "parent_id": new.parent_id,
        "tree_key": new.tree_key,
        "tree_key_id": new.tree_key_id,
        "created_at": new.created_at,
        "updated_at": new.updated_at,
        "deleted_at": None,
        "purge_at": None,
        "policy": None,
        "partial": new.partial,
    }


async def _insert_branch(tx: Tx, new: RepoRow) -> None:
    await tx.run(
        refs.INSERT,
        id=new_branch_id(),
        repo_id=new.id,
        type="branch",
        name=new.default_branch,
        head=None,
        seq=0,
        sealed_seq=0,
        base=None,
        created_at=new.created_at,
        updated_at=new.created_at,
        deleted_at=None,
    )


# --- settings


def _names_changed(patch: RepoPatch) -> list[str]:
    """The names of the settings that a patch changes."""
    return [name for name in patch.__struct_fields__ if getattr(patch, name) is not None]


def _check_archived(view: View, patch: RepoPatch) -> None:
    if view.repo.state == "archived" and patch.archived is not False and patch != RepoPatch(archived=True):
        view.require_active()


def _class_for(old: RepoRow, visibility: str | None) -> str:
    """The class of a repository after a change of its visibility. Raises ForkIsPublic or ClassImmutable if
    the visibility cannot change."""
    if visibility is None or (visibility == "public") == old.public:
        return old.class_
    if old.class_ == "public_fork":
        raise ForkIsPublic(f"{old.full_name} is a fork of a public repository and stays public")
    if old.class_ == "private_e2ee":
        raise ClassImmutable(f"{old.full_name} is end-to-end encrypted and cannot become public")
    return "published_public" if visibility == "public" else "private_plaintext"


async def _default_branch(tx: Tx, old: RepoRow, name: str | None) -> str:
    if name is None or name == old.default_branch:
        return old.default_branch
    if await tx.one(refs.ONE, repo_id=old.id, type="branch", name=name) is None:
        raise Conflict(f"there is no branch {name[:200]} in {old.full_name}; create it first")
    return name


async def _rename(tx: Tx, old: RepoRow, new_name: str, now: int) -> None:
    """Rename a repository. The old name becomes an alias and stays reserved for 90 days."""
    holder = await tx.value(rows.ALIAS_OF, owner=old.owner, name=new_name, now=now)
    if holder is not None and holder != old.id:
        raise NameTaken(f"{old.owner}/{new_name} is reserved for a repository that was renamed")
    await tx.run(rows.ALIAS_DROP, owner=old.owner, name=new_name)
    await tx.run(rows.ALIAS_DROP, owner=old.owner, name=old.name)
    await tx.run(rows.ALIAS_INSERT, owner=old.owner, name=old.name, repo_id=old.id, expires_at=now + ALIAS_MS)


# --- lists


async def _owner_id(caller: Caller, owner: str | None) -> str | None:
    if owner is None:
        return None
    if owner == "@me":
        return caller.me.account_id
    row = await caller.node.db.lookup(rows.OWNER_ID, handle=owner.removeprefix("@").lower())
    return row[0] if row else None


async def _page_of_deleted(tx: Tx, caller: Caller, owner_id: str | None, query: RepoQuery) -> Page[Repo]:
    """A page of the deleted repositories that the caller can still restore."""
    me = caller.me.account_id
    if query.owner is not None and owner_id is None:
        return Page(items=[])
    to_wire, values = partial(shown_row, caller), {"owner_id": owner_id or me, "account": me}
    return await paging.read_page(tx, rows.DELETED_OF_OWNER, query, to_wire, **values, now=now_ms())


async def _find_by_name(tx: Tx, caller: Caller, owner: str, name: str) -> Repo | None:
    handle = (caller.me.handle or "") if owner == "@me" else owner.removeprefix("@").lower()
    visible = await find(tx, caller, handle, name.lower())
    if visible is None:
        return None
    row, role = visible
    return await _to_wire_with_parent(tx, caller, row, role)


# --- wire form


async def _to_wire_with_parent(tx: Tx, caller: Caller, row: RepoRow, role: Role | None) -> Repo:
    """Convert a repository to the form that answers have. For a fork it includes the parent, unless that is
    hidden from the caller."""
    parent = await parent_of(tx, caller, row)
    return to_wire(caller, row, role, parent=parent)


def to_wire(caller: Caller, row: RepoRow, role: Role | None, *, parent: ParentRepo | None = None) -> Repo:
    return Repo(
        id=row.id,
        owner=row.owner,
        name=row.name,
        full_name=row.full_name,
        kind=row.kind,  # type: ignore[arg-type]  # the database holds what the model allows
        class_=row.class_,  # type: ignore[arg-type]
        default_branch=row.default_branch,
        description=row.description,
        visibility="public" if row.public else "private",
        archived=row.state == "archived",
        state=row.state,  # type: ignore[arg-type]
        created_at=rfc3339(row.created_at),
        updated_at=rfc3339(row.updated_at),
        parent=parent,
        viewer=Viewer(role=role) if caller.principal is not None else None,
        partial=bool(row.partial),
        clone_url=clone_url(caller.node, row, role),
    )


def clone_url(node: Node, row: RepoRow, role: Role | None) -> str | None:
    """The address from which git clones the repository. None if git may not read it, or if some of it is
    hidden from this role."""
    whole = not row.partial and (row.policy is None or RANK[role] >= RANK["write"])
    readable = whole and row.class_ != "private_e2ee" and row.state in ("active", "archived")
    if not readable or git.find_program() is None:
        return None
    return f"{node.config.public_url}/{row.full_name}.git"
