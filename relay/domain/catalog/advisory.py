"""Rules of advisories: everybody reads them, and owners of public repositories publish, where the edition has
them."""

from __future__ import annotations

from collections import defaultdict

import msgspec
from msgspec.structs import replace

from localstore.core.dependencies import key
from localstore.core.dependencies.affected import is_affected
from localstore.core.errors import Conflict, EditionLacks, NotFound
from localstore.core.limits import ADVISORIES
from localstore.core.model.base import Page
from localstore.core.model.catalog.advisory import (
    SCHEMA,
    Advisory,
    AdvisoryDraft,
    AdvisoryQuery,
    Affected,
    NodeFields,
    Package,
)
from localstore.core.model.catalog.dependency import Dependency, Matched
from localstore.core.rights import OPERATIONS
from relay.base import edition
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View
from relay.db import paging
from relay.db.engine.database import Row, Tx
from relay.domain.catalog.rows import advisory as rows

PUBLISHING = OPERATIONS["advisory.publish"]
MATCHES = 1000  # advisories about the packages of one ecosystem that are compared
_RECORD = msgspec.json.Decoder(Advisory)


async def page(caller: Caller, query: AdvisoryQuery) -> Page[Advisory]:
    """Security advisories, newest first"""
    async with caller.read() as tx:
        if query.repo is None:
            return await paging.page(tx, rows.PAGE, query, _listed)
        owner, _, name = query.repo.lower().partition("/")
        return await paging.page(tx, rows.OF_REPO, query, _listed, owner=owner, name=name)


async def get(caller: Caller, advisory: str) -> Advisory:
    """One security advisory, as an OSV record"""
    async with caller.read() as tx:
        found = await tx.one(rows.ONE, advisory_id=advisory)
    if found is None:
        raise NotFound
    return _listed(found)


async def publish(tx: Tx, view: View, draft: AdvisoryDraft) -> Advisory:
    """Tell everybody, in a transaction of the owner about the repository. Raises EditionLacks where this
    build has no advisories."""
    if not PUBLISHING.in_edition(edition.EDITION):
        raise EditionLacks(
            f"this node is {edition.EDITION}; publishing an advisory needs {PUBLISHING.edition}"
        )
    if not view.repo.public:
        raise Conflict(f"{view.repo.full_name} is private, and an advisory is for everybody")
    if await tx.value(rows.COUNT, of_repo=view.repo.id) >= ADVISORIES:
        raise Conflict(f"{view.repo.full_name} has {ADVISORIES} advisories, and no repository has more")
    now, own = now_ms(), Affected(package=Package(ecosystem="svc", name=view.repo.full_name))
    made = Advisory(
        schema_version=SCHEMA,
        id=new_id(),
        modified=rfc3339(now),
        published=rfc3339(now),
        summary=draft.summary,
        details=draft.details,
        aliases=draft.aliases,
        affected=draft.affected or [own],
        references=draft.references,
        database_specific=NodeFields(repo=view.repo.full_name, severity=draft.severity),
    )
    await tx.run(
        rows.INSERT, id=made.id, repo_id=view.repo.id, record=msgspec.json.encode(made), published_at=now
    )
    packages = {
        (one.package.ecosystem, key(one.package.ecosystem, one.package.name)) for one in made.affected
    }
    await tx.many(
        rows.INSERT_PACKAGE,
        [{"ecosystem": kind, "name": name, "advisory_id": made.id} for kind, name in sorted(packages)],
    )
    await view.node.hub.announce(tx, view.repo.id, "advisory.publish", id=made.id)
    return made


async def matched(tx: Tx, items: list[Dependency]) -> list[Dependency]:
    """The dependencies with the advisories about them; one statement for each ecosystem."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for one in items:
        wanted[one.ecosystem].add(key(one.ecosystem, one.name))
    about: dict[tuple[str, str], list[Advisory]] = defaultdict(list)
    for ecosystem, names in sorted(wanted.items()):
        found = await tx.all(rows.ABOUT, ecosystem=ecosystem, names=sorted(names), limit=MATCHES)
        for name, record in found:
            about[ecosystem, name].append(_RECORD.decode(bytes(record)))
    if not about:
        return items
    return [
        replace(one, advisories=_of(one, about.get((one.ecosystem, key(one.ecosystem, one.name)), [])))
        for one in items
    ]


def _of(one: Dependency, known: list[Advisory]) -> list[Matched]:
    found: list[Matched] = []
    for advisory in known:
        answers = [_speaks_of(one, of) for of in advisory.affected]
        if any(answer is not False for answer in answers):
            found.append(Matched(id=advisory.id, summary=advisory.summary, certain=True in answers))
    return found


def _speaks_of(one: Dependency, of: Affected) -> bool | None:
    if of.package.ecosystem != one.ecosystem or key(one.ecosystem, of.package.name) != key(
        one.ecosystem, one.name
    ):
        return False
    if one.version is None:
        return None if of.ranges or of.versions else True
    return is_affected(one.ecosystem, one.version, of.ranges, of.versions)


def _listed(found: Row) -> Advisory:
    return _RECORD.decode(bytes(found[1]))
