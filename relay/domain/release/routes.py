"""Routes of the releases of a repository, their assets and their signatures."""

from __future__ import annotations

from sanic.request import Request

from localstore.core.model import publication, release
from localstore.core.model.limits import ASSET_FILE
from localstore.core.model.release import Asset, AssetUpload, Release, ReleaseEdit, media_type
from relay.caller import View
from relay.domain.release import publication as publications
from relay.domain.release import release as releases
from relay.http.routing import Upload, serves

serves(
    publication.CREATE, operation="publication.create", name="publication.create_publication", errors=(409,)
)(publications.create)
serves(release.LIST, operation="release.list", name="release.list_releases")(releases.page)
serves(release.CREATE, operation="release.create", name="release.create_release", errors=(409, 413))(
    releases.create
)
serves(release.GET, operation="release.get", name="release.get_release")(releases.get)


@serves(release.EDIT, operation="release.edit", errors=(409, 413))
async def edit_release(view: View, v: str, body: ReleaseEdit) -> Release:
    """Rewrite the notes of a release"""
    return await releases.edit(view, v, body.notes)


serves(release.DELETE, operation="release.delete", name="release.delete_release", errors=(409,))(
    releases.delete
)
serves(release.ASSETS, operation="asset.list", name="release.list_assets")(releases.assets)


@serves(release.UPLOAD, operation="asset.upload", errors=(409, 413, 422), max_body=ASSET_FILE, stream=True)
async def upload_asset(view: View, v: str, query: AssetUpload, request: Request, upload: Upload) -> Asset:
    """Upload an asset as the body of the request; its media type is the Content-Type

    With `manifest` the body lists the chunks of the asset. With `replaces` the new asset replaces the asset
    of the same name in the same step.
    """
    media = media_type(request.headers.get("content-type"))
    return await releases.upload(view, v, query.name, media, upload, query.manifest, query.replaces)


serves(
    release.DOWNLOAD,
    operation="asset.get",
    name="release.download_asset",
    media="*/*",
    others=(206, 304),
    errors=(416,),
)(releases.download)
serves(release.DELETE_ASSET, operation="asset.delete", errors=(409,))(releases.delete_asset)
