"""Rules of reactions to issues, proposals and comments. An account has at most one reaction of each kind."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.issue import REACTIONS, Reacted
from relay.caller import View
from relay.domain.discussion import comment as comments
from relay.domain.discussion import reaction_counts as counts
from relay.domain.discussion import sight, subject
from relay.domain.discussion.rows import comment as rows
from relay.events.log import Audience


async def put(view: View, number: str, name: str, comment: str | None = None) -> Reacted:
    """Add the caller's reaction to a comment, or to the issue or proposal itself if `comment` is None."""
    return await _set(view, number, name, comment, given=True)


async def remove(view: View, number: str, name: str, comment: str | None = None) -> Reacted:
    """Remove the caller's reaction to a comment, or to the issue or proposal itself if `comment` is None."""
    return await _set(view, number, name, comment, given=False)


async def _set(view: View, number: str, name: str, comment: str | None, given: bool) -> Reacted:
    if name not in REACTIONS:
        raise NotFound
    me, key = view.me.account_id, comment or ""
    async with view.write() as tx:
        thread = None
        if comment is None:
            n = (await subject.find(tx, view, number)).number
        else:
            of, row = await comments.find(tx, view, number, comment)
            n, thread = of.number, row.thread_id
        about: dict[str, Any] = {"of_repo": view.repo.id, "of_number": n, "comment": key}
        has = await tx.one(rows.HAS_REACTED, **about, reaction=name, me=me) is not None
        if given and not has:
            await tx.run(rows.REACT, repo_id=view.repo.id, number=n, comment_id=key, name=name, account_id=me)
        elif has and not given:
            await tx.run(rows.UNREACT, **about, reaction=name, me=me)
        if has != given:
            kind = "reaction.add" if given else "reaction.remove"
            data = {"name": name, "comment": comment} if comment else {"name": name}
            audience: Audience = "reader"
            if thread is not None:
                audience = await sight.audience_of(tx, view, await sight.find(tx, view, n, thread))
            await view.node.hub.announce(tx, view.repo.id, kind, number=n, audience=audience, **data)
        if comment is None:
            return Reacted(reactions=(await counts.on_issues(tx, view, [n]))[n])
        return Reacted(reactions=(await counts.on_comments(tx, view, n, [key]))[key])
