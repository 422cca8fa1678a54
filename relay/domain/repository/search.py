"""Searches for repositories by name and description, among those that the caller may see."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.repo import Repo
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.db import repo as rows
from relay.db.paging import Cursor, page_size
from relay.domain.attention import social
from relay.domain.repository.repo import shown_row

WEEK, MONTH = 7 * 24 * 3_600_000, 30 * 24 * 3_600_000
_TOP = 2**62


async def repos(
    caller: Caller, q: str, sort: str | None, cursor: str | None, limit: int | None
) -> Page[Repo]:
    """Find repositories that match `q`. `sort`: `trending` sorts by stars and the number of seals in the last
    month, where a seal of the last week counts four times; `recent` sorts by the last change."""
    size = page_size(limit)
    me = caller.principal.account_id if caller.principal else ""
    values = {"account": me, "pattern": _pattern(q), "limit": size + 1}
    measure, last = Cursor.read(cursor, _TOP, "g")
    async with caller.read() as tx:
        if sort == "recent":
            matches = await tx.all(rows.RECENT, **values, updated=measure, before=last)
        else:
            now = now_ms()
            matches = await tx.all(
                rows.TRENDING, **values, heat=measure, before=last, week=now - WEEK, month=now - MONTH
            )
        items = await social.of_several(tx, caller, [shown_row(caller, row) for row in matches[:size]])
    if len(matches) <= size:
        return Page(items=items)
    row = matches[size - 1]
    key = rows.to_row(row).updated_at if sort == "recent" else row[-1]
    return Page(items=items, next_cursor=Cursor.write(key, items[-1].id))


def _pattern(q: str) -> str:
    """A LIKE pattern that matches texts that contain `q`. Wildcards in `q` are taken literally."""
    plain = q.strip().lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{plain}%"
