"""Rules of advisories. Everybody may read them. Owners of public repositories publish them, in editions of
the relay that allow it.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec
from msgspec.structs import replace

from localstore.core.dependencies import key
from localstore.core.dependencies.affected import is_affected
from localstore.core.errors import Conflict, EditionLacks, NotFound
from localstore.core.model.advisory import (
    SCHEMA,
    Advisory,
    AdvisoryDraft,
    AdvisoryQuery,
    Affected,
    NodeFields,
    Package,
)
from localstore.core.model.base import Page
from localstore.core.model.dependency import Dependency, Matched
from localstore.core.model.limits import ADVISORIES
from localstore.core.model.rights import OPERATIONS
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
            return await paging.read_page(tx, rows.PAGE, query, _decode_record)
        owner, _, name = query.repo.lower().partition("/")
        return await paging.read_page(tx, rows.OF_REPO, query, _decode_record, owner=owner, name=name)


async def get(caller: Caller, advisory: str) -> Advisory:
    """One security advisory, as an OSV record"""
    async with caller.read() as tx:
        row = await tx.one(rows.ONE, advisory_id=advisory)
    if row is None:
        raise NotFound
    return _decode_record(row)


async def publish(tx: Tx, view: View, draft: AdvisoryDraft) -> Advisory:
    """Publish an advisory of the repository. `tx`: a write transaction of the repository's owner. Raises
    EditionLacks if this edition has no advisories, and Conflict if the repository is private or has
    ADVISORIES advisories already."""
    if not PUBLISHING.in_edition(edition.EDITION):
        raise EditionLacks(
            f"this node is {edition.EDITION}; publishing an advisory needs {PUBLISHING.edition}"
        )
    if not view.repo.public:
        raise Conflict(f"{view.repo.full_name} is private, and an advisory is for everybody")
    if await tx.value(rows.COUNT, of_repo=view.repo.id) >= ADVISORIES:
        raise Conflict(f"{view.repo.full_name} has {ADVISORIES} advisories, and no repository has more")
    now, own = now_ms(), Affected(package=Package(ecosystem="svc", name=view.repo.full_name))
    advisory = Advisory(
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
        rows.INSERT,
        id=advisory.id,
        repo_id=view.repo.id,
        record=msgspec.json.encode(advisory),
        published_at=now,
    )
    packages = {
        (affected.package.ecosystem, key(affected.package.ecosystem, affected.package.name))
        for affected in advisory.affected
    }
    await tx.many(
        rows.INSERT_PACKAGE,
        [{"ecosystem": kind, "name": name, "advisory_id": advisory.id} for kind, name in sorted(packages)],
    )
    await view.node.hub.announce(tx, view.repo.id, "advisory.publish", id=advisory.id)
    return advisory


async def match_all(tx: Tx, items: list[Dependency]) -> list[Dependency]:
    """Add to each dependency the advisories about it. Runs one statement for each ecosystem."""
    names_by_ecosystem: dict[str, set[str]] = defaultdict(set)
    for item in items:
        names_by_ecosystem[item.ecosystem].add(key(item.ecosystem, item.name))
    about: dict[tuple[str, str], list[Advisory]] = defaultdict(list)
    for ecosystem, names in sorted(names_by_ecosystem.items()):
        records = await tx.all(rows.ABOUT, ecosystem=ecosystem, names=sorted(names), limit=MATCHES)
        for name, record in records:
            about[ecosystem, name].append(_RECORD.decode(bytes(record)))
    if not about:
        return items
    return [
        replace(
            item, advisories=_match(item, about.get((item.ecosystem, key(item.ecosystem, item.name)), []))
        )
        for item in items
    ]


def _match(item: Dependency, advisories: list[Advisory]) -> list[Matched]:
    """The advisories that affect the dependency or may affect it."""
    matches: list[Matched] = []
    for advisory in advisories:
        answers = [_is_about(item, affected) for affected in advisory.affected]
        if any(answer is not False for answer in answers):
            matches.append(Matched(id=advisory.id, summary=advisory.summary, certain=True in answers))
    return matches


def _is_about(item: Dependency, affected: Affected) -> bool | None:
    """Whether the advisory affects the dependency. None means that this is not certain: the manifest allows
    several versions, or the version cannot be compared."""
    if affected.package.ecosystem != item.ecosystem or key(item.ecosystem, affected.package.name) != key(
        item.ecosystem, item.name
    ):
        return False
    if item.version is None:
        return None if affected.ranges or affected.versions else True
    return is_affected(item.ecosystem, item.version, affected.ranges, affected.versions)


def _decode_record(row: Row) -> Advisory:
    return _RECORD.decode(bytes(row[1]))
