"""Rules of releases. A version names one seal, and the names of assets are unique within it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from localstore.core.encoding import b64u
from localstore.core.errors import Conflict, Invalid, NotFound, TooLarge
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.limits import ASSETS, NOTES_BYTES, RELEASES, in_words
from localstore.core.model.release import (
    UNSIGNED,
    Asset,
    AssetExists,
    Publication,
    Release,
    ReleaseCreate,
    ReleaseExists,
    check_asset_name,
)
from localstore.core.paths import case_key
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import View
from relay.db import paging
from relay.db.engine.database import Tx
from relay.domain.release.rows import publication as publications
from relay.domain.release.rows import release as rows
from relay.domain.release.rows.publication import PublicationRow
from relay.domain.release.rows.release import AssetRow, ReleaseRow
from relay.domain.storage import file
from relay.domain.storage.pack import require_plaintext
from relay.http.routing import Reply, Upload

# Browsers must save an asset and never execute it, whatever media type its uploader gave.
POLICY = {"x-content-type-options": "nosniff", "content-security-policy": "default-src 'none'; sandbox"}


async def page(view: View, query: PageQuery) -> Page[Release]:
    """Releases, newest first"""
    async with view.read() as tx:
        listed = await paging.read_page(tx, rows.PAGE, query, rows.release_row, of_repo=view.repo.id)
        return Page(items=await to_wire(tx, listed.items), next_cursor=listed.next_cursor)


async def get(view: View, version: str) -> Release:
    """A release with its assets"""
    async with view.read() as tx:
        return await _release_to_wire(tx, await _find(tx, view, version))


async def find_with_assets(tx: Tx, view: View, version: str) -> tuple[str, Release]:
    """Find a release by its version. Returns (id, release with its assets). Raises NotFound."""
    row = await _find(tx, view, version)
    return row.id, await _release_to_wire(tx, row)


async def create(view: View, body: ReleaseCreate) -> Release:
    """Create a release of an exact seal"""
    _check_notes(body.notes)
    async with view.write() as tx:
        of_repo = view.repo.id
        if await tx.value(rows.SEALED, of_repo=of_repo, seal_id=body.seal_id) is None:
            raise Invalid(
                f"{body.seal_id[:12]} is not a seal of {view.repo.full_name}; see: svc log",
                pointer="/seal_id",
            )
        if await tx.one(rows.ONE, of_repo=of_repo, version=body.version) is not None:
            raise ReleaseExists(f"{view.repo.full_name} already has a release {body.version}")
        view.require_room(await tx.value(rows.COUNT, of_repo=of_repo), RELEASES, "releases")
        await tx.run(
            rows.INSERT,
            id=new_id(),
            repo_id=of_repo,
            version=body.version,
            seal_id=body.seal_id,
            notes=body.notes,
            author_id=view.me.account_id,
            created_at=now_ms(),
        )
        await _announce(tx, view, "release.create", body.version, seal=body.seal_id)
        return await _release_to_wire(tx, await _find(tx, view, body.version))


async def edit(view: View, version: str, notes: str) -> Release:
    """Change the notes of a release. Its seal does not change."""
    _check_notes(notes)
    async with view.write() as tx:
        row = await _find(tx, view, version)
        await tx.run(rows.EDIT, of_release=row.id, new_notes=notes)
        await _announce(tx, view, "release.edit", version)
        return await _release_to_wire(tx, await _find(tx, view, version))


async def delete(view: View, version: str) -> None:
    """Delete a release and its assets

    The collector frees their bytes.
    """
    async with view.write() as tx:
        row = await _find(tx, view, version)
        await tx.run(publications.DROP, of_release=row.id)
        await tx.run(rows.ASSETS_DELETE, of_release=row.id)
        await tx.run(rows.DELETE, of_release=row.id)
        await _announce(tx, view, "release.delete", version, seal=row.seal_id)


# --- assets


async def assets(view: View, version: str, query: PageQuery) -> Page[Asset]:
    """Assets of a release, sorted by name regardless of case"""
    async with view.read() as tx:
        row = await _find(tx, view, version)
        return await paging.read_page(tx, rows.ASSET_PAGE, query, _asset_of_row, of_release=row.id)


async def upload(
    view: View, version: str, name: str, media: str, body: Upload, manifest: bool = False, replaces: str = ""
) -> Asset:
    """Store an asset of a release. It becomes reachable only when its body has arrived completely and matches
    the signature of the request. `manifest`: the body lists the chunks of the asset. `replaces`: BLAKE3 of
    the asset of this name that is deleted in the same step. If the release has a different asset of this
    name, AssetExists is raised before the body is read."""
    require_plaintext(view)
    check_asset_name(name)
    async with view.read() as tx:
        await _require_place(tx, await _find(tx, view, version), name, replaces)
    received = await (file.receive_listed(view, body) if manifest else file.receive(view, body))
    async with view.write() as tx:
        row = await _find(tx, view, version)
        before = await _require_place(tx, row, name, replaces)
        await received.attach(tx, view)
        await tx.run(publications.DROP, of_release=row.id)  # it was signed without this asset
        if before is not None:
            await tx.run(rows.ASSET_DELETE, of_release=row.id, folded=before.folded)
            await _announce(tx, view, "asset.delete", version, name=before.name)
        await tx.run(
            rows.ASSET_INSERT,
            release_id=row.id,
            folded=case_key(name),
            name=name,
            digest=received.digest,
            size=received.size,
            content_type=media,
            uploader_id=view.me.account_id,
            created_at=now_ms(),
        )
        await _announce(tx, view, "asset.upload", version, name=name)
        return _asset_to_wire(await _find_asset(tx, row, name))


async def download(view: View, version: str, name: str) -> Reply:
    """The bytes of an asset; with ETag and ranges

    Browsers save it as a file. Caches must revalidate, because the name may be reused.
    """
    require_plaintext(view)
    async with view.read() as tx:
        asset = await _find_asset(tx, await _find(tx, view, version), name)
    headers = {
        **POLICY,
        "cache-control": "public, no-cache" if view.repo.public else "private, no-cache",
        "content-disposition": to_disposition(asset.name),
    }
    return await file.reply(view, asset.digest, asset.size, asset.content_type, headers)


async def delete_asset(view: View, version: str, name: str) -> None:
    """Remove an asset"""
    async with view.write() as tx:
        row = await _find(tx, view, version)
        asset = await _find_asset(tx, row, name)
        await tx.run(publications.DROP, of_release=row.id)
        await tx.run(rows.ASSET_DELETE, of_release=row.id, folded=asset.folded)
        await _announce(tx, view, "asset.delete", version, name=name)


def to_disposition(name: str) -> str:
    """The Content-Disposition header of a download (RFC 6266). It has the name in ASCII for old clients, and
    in UTF-8."""
    plain = "".join(char if char.isascii() and char not in '"%' else "_" for char in name)
    whole = quote(name, safe="")
    return f'attachment; filename="{plain}"' + ("" if plain == name else f"; filename*=UTF-8''{whole}")


# --- rows


async def _find(tx: Tx, view: View, version: str) -> ReleaseRow:
    row = await tx.one(rows.ONE, of_repo=view.repo.id, version=version)
    if row is None:
        raise NotFound
    return rows.release_row(row)


async def _find_asset(tx: Tx, of: ReleaseRow, name: str) -> AssetRow:
    row = await tx.one(rows.ASSET, of_release=of.id, folded=case_key(name))
    asset = rows.asset_row(row) if row is not None else None
    if asset is None or asset.name != name:
        raise NotFound
    return asset


async def _require_place(tx: Tx, of: ReleaseRow, name: str, replaces: str) -> AssetRow | None:
    """Find the asset of this name, which is to be replaced. Returns None for a new name. Raises AssetExists
    unless `replaces` is the digest of that asset. Raises Conflict if the release has as many assets as
    allowed."""
    row = await tx.one(rows.ASSET, of_release=of.id, folded=case_key(name))
    if row is not None:
        asset = rows.asset_row(row)
        if bytes(asset.digest).hex() == replaces:
            return asset
        raise AssetExists(
            f"release {of.version} already has an asset {asset.name}; delete it first, or add --clobber",
            name=asset.name,
            blake3=bytes(asset.digest).hex(),
            size=asset.size,
        )
    if await tx.value(rows.ASSET_COUNT, of_release=of.id) >= ASSETS:
        raise Conflict(f"release {of.version} has {ASSETS} assets, and no release has more")
    return None


def _check_notes(notes: str) -> None:
    if len(notes.encode("utf-8", "surrogatepass")) > NOTES_BYTES:
        raise TooLarge(f"notes have at most {in_words(NOTES_BYTES)}")


async def _announce(tx: Tx, view: View, kind: str, version: str, **data: Any) -> None:
    await view.node.hub.announce(tx, view.repo.id, kind, version=version, **data)


async def _release_to_wire(tx: Tx, row: ReleaseRow) -> Release:
    return (await to_wire(tx, [row]))[0]


async def to_wire(tx: Tx, releases: Sequence[ReleaseRow]) -> list[Release]:
    """Convert releases to the form that answers have. One statement reads the assets of all releases, and
    another one their signatures."""
    by_release: dict[str, list[Asset]] = {release.id: [] for release in releases}
    for row in await tx.all(rows.ASSETS_OF, ids=list(by_release)) if releases else []:
        asset = rows.asset_row(row)
        by_release[asset.release_id].append(_asset_to_wire(asset))
    signed = {
        row[0]: _publication_to_wire(publications.to_row(row))
        for row in (await tx.all(publications.OF_RELEASES, ids=list(by_release)) if releases else [])
    }
    return [
        Release(
            version=release.version,
            seal_id=release.seal_id,
            notes=release.notes,
            author=to_actor(release.author_id, release.author_handle, release.author_kind),
            assets=by_release[release.id],
            created_at=rfc3339(release.created_at),
            publication=signed.get(release.id, UNSIGNED),
        )
        for release in releases
    ]


def _publication_to_wire(row: PublicationRow) -> Publication:
    return Publication(
        signed=True,
        key_id=row.key_id,
        public_key=b64u(row.key_ed25519),
        signature=b64u(row.signature),
        signed_by=to_actor(row.account_id, row.handle, row.kind),
        signed_at=rfc3339(row.created_at),
    )


def _asset_of_row(row: Any) -> Asset:
    return _asset_to_wire(rows.asset_row(row))


def _asset_to_wire(row: AssetRow) -> Asset:
    return Asset(
        name=row.name,
        size=row.size,
        blake3=bytes(row.digest).hex(),
        content_type=row.content_type,
        uploaded_by=to_actor(row.uploader_id, row.uploader_handle, row.uploader_kind),
        created_at=rfc3339(row.created_at),
    )
