"""Rules of the path policy, which says who sees which paths. `View.sees` applies it to all content of
answers.
"""

from __future__ import annotations

import secrets

from localstore.core import paths
from localstore.core.errors import Conflict, EditionLacks, Invalid, NotFound, PathInvalid
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.path import PathChange, PathRule, PathRuleSet
from localstore.core.tree.policy import Visibility
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import View
from relay.db import paging
from relay.db import repo as repos
from relay.db.engine.database import Row, Tx
from relay.domain.repository.rows import path as rows


async def page(view: View, query: PageQuery) -> Page[PathRule]:
    """Rules for paths, sorted by path"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.PAGE, query, _rule, of_repo=view.repo.id)


async def timeline(view: View, query: PageQuery) -> Page[PathChange]:
    """Changes of the rules for paths, newest first"""
    async with view.read() as tx:
        return await paging.read_page(tx, rows.CHANGES, query, _change, of_repo=view.repo.id)


async def put(view: View, body: PathRuleSet) -> PathRule:
    """Set who may read a path and everything below it

    The rule replaces an earlier one.
    """
    _require_path(body.path)
    if body.price_cents:
        if body.visibility == "open":
            raise Invalid("an open path has no price", pointer="/price_cents")
        raise EditionLacks("this node does not sell paths: a price needs an edition that bills")
    async with view.write() as tx:
        key = {"of_repo": view.repo.id, "of_path": body.path}
        was = await tx.value(rows.ONE, **key)
        if was is None:
            used = await tx.value(rows.COUNT, of_repo=view.repo.id)
            view.require_room(used, limits.PATH_RULES, "path rules")
            await tx.run(rows.INSERT, repo_id=view.repo.id, path=body.path, visibility=body.visibility)
        elif was != body.visibility:
            await tx.run(rows.SET, **key, new_visibility=body.visibility)
        if was != body.visibility:
            await _record_change(tx, view, "path.set", body.path, was, body.visibility)
        return PathRule(path=body.path, visibility=body.visibility)


async def remove(view: View, path: str) -> None:
    """Remove the rule for this path, so that the rules of the folders above it apply. Raises NotFound if the
    path has no rule."""
    async with view.write() as tx:
        key = {"of_repo": view.repo.id, "of_path": path}
        was = await tx.value(rows.ONE, **key)
        if was is None:
            raise NotFound
        await tx.run(rows.DELETE, **key)
        await _record_change(tx, view, "path.remove", path, was, None)


async def _record_change(
    tx: Tx, view: View, kind: str, path: str, was: Visibility | None, became: Visibility | None
) -> None:
    """Record a change of a path rule, from `was` to `became`. Also increases the number of the path policy,
    which invalidates cached answers. `kind`: kind of the event."""
    changes = await tx.value(rows.CHANGE_COUNT, of_repo=view.repo.id)
    if changes >= limits.PATH_CHANGES:
        raise Conflict(f"the rules of {view.repo.full_name} changed {changes} times, which is enough")
    change = new_id()
    await tx.run(
        rows.CHANGED,
        id=change,
        repo_id=view.repo.id,
        path=path,
        was=was,
        became=became,
        author_id=view.me.account_id,
        created_at=now_ms(),
    )
    hiding = await tx.value(rows.HIDING, of_repo=view.repo.id)
    if hiding and became != "open" and became != "public":
        await _replace_tree_key(tx, view)
    number = max(changes, view.repo.policy or 0) + 1
    await tx.run(rows.SET_NUMBER, of_repo=view.repo.id, new_number=number if hiding else None)
    await view.node.hub.announce(tx, view.repo.id, kind, audience="owner", policy=number, change=change)


async def _replace_tree_key(tx: Tx, view: View) -> None:
    """Give the repository a new tree key, because readers from whom paths are now hidden may know the old
    one. With the new key they cannot compute the salts of these paths. The next seal builds its tree anew;
    earlier seals keep their keys."""
    old = {"id": view.repo.tree_key_id, "key": view.repo.tree_key}
    await tx.many(repos.KEEP_KEY, [{"repo_id": view.repo.id, **old}])
    await tx.run(repos.NEW_KEY, repo_id=view.repo.id, new_key=secrets.token_bytes(32), new_key_id=new_id())


def _require_path(path: str) -> None:
    """Raise Invalid unless the text is a valid path, or "" for the whole tree."""
    try:
        if path:
            paths.check(path)
    except PathInvalid as error:
        raise Invalid(error.detail, pointer="/path") from None


def _rule(columns: Row) -> PathRule:
    path, visibility = columns
    return PathRule(path=path, visibility=visibility)


def _change(columns: Row) -> PathChange:
    _, path, was, became, created_at, author, handle, kind = columns
    return PathChange(
        at=rfc3339(created_at), by=to_actor(author, handle, kind), path=path, was=was, became=became
    )
