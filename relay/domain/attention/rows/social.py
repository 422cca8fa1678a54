"""SQL statements on stars and watches."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, bindparam, delete, func, insert, or_, select, update

from relay.db.repo import ALIVE, PUBLIC
from relay.db.schema.catalog.listing import listing
from relay.db.schema.collaboration.attention import social, star, watch
from relay.db.schema.repo import collaborator, repo

_REPO: Any = bindparam("of_repo")
_ME: Any = bindparam("me")
_TABLES = {"star": (star, social.c.stars), "watch": (watch, social.c.watchers)}


def _is_mine(table: Table) -> ColumnElement[bool]:
    return and_(table.c.repo_id == _REPO, table.c.account_id == _ME)


HAS = {name: select(table.c.created_at).where(_is_mine(table)) for name, (table, _) in _TABLES.items()}
SET = {name: insert(table) for name, (table, _) in _TABLES.items()}
CLEAR = {name: delete(table).where(_is_mine(table)) for name, (table, _) in _TABLES.items()}
COUNT = {
    name: update(social).where(social.c.repo_id == _REPO).values({count: count + bindparam("more")})
    for name, (_, count) in _TABLES.items()
}
FIRST = insert(social)

# Columns: repository, stars, watchers, whether the caller gave a star, whether they watch, listing.
OF_REPOS = select(
    repo.c.id,
    func.coalesce(social.c.stars, 0),
    func.coalesce(social.c.watchers, 0),
    select(star.c.repo_id).where(star.c.repo_id == repo.c.id, star.c.account_id == _ME).exists(),
    select(watch.c.repo_id).where(watch.c.repo_id == repo.c.id, watch.c.account_id == _ME).exists(),
    listing.c.id,
).select_from(
    repo.outerjoin(social, social.c.repo_id == repo.c.id).outerjoin(listing, listing.c.repo_id == repo.c.id)
)
ONE = OF_REPOS.where(repo.c.id == _REPO)
SEVERAL = OF_REPOS.where(repo.c.id.in_(bindparam("repo_ids", expanding=True)))


def _is_hidden_from_account(table: Table) -> ColumnElement[bool]:
    """The condition for rows of this repository in `table` whose account may no longer see the repository."""
    sees = (
        select(repo.c.id)
        .select_from(
            repo.outerjoin(
                collaborator,
                and_(collaborator.c.repo_id == repo.c.id, collaborator.c.account_id == table.c.account_id),
            )
        )
        .where(
            repo.c.id == table.c.repo_id,
            or_(
                ~ALIVE,  # it may come back, and nobody sees it meanwhile
                PUBLIC,
                repo.c.owner_id == table.c.account_id,
                collaborator.c.role.is_not(None),
            ),
        )
        .correlate(table)
        .exists()
    )
    return and_(table.c.repo_id == _REPO, ~sees)


DROP_HIDDEN = {
    name: delete(table).where(_is_hidden_from_account(table)) for name, (table, _) in _TABLES.items()
}
