"""Releases of a repository and their assets."""

from __future__ import annotations

from sanic.request import Request

from localstore.core.limits import ASSET_FILE
from localstore.core.model import release as endpoints
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.release import Asset, AssetUpload, Release, ReleaseCreate, ReleaseEdit, media_type
from relay.caller import View
from relay.domain.release import release as releases
from relay.http.routing import Reply, Upload, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="release.list", flag=FLAG)
async def list_releases(view: View, query: PageQuery) -> Page[Release]:
    """Releases, newest first"""
    return await releases.page(view, query)


@serves(endpoints.CREATE, operation="release.create", flag=FLAG, errors=(409, 413))
async def create_release(view: View, body: ReleaseCreate) -> Release:
    """Create a release of an exact seal"""
    return await releases.create(view, body)


@serves(endpoints.GET, operation="release.get", flag=FLAG)
async def get_release(view: View, v: str) -> Release:
    """A release with its assets"""
    return await releases.get(view, v)


@serves(endpoints.EDIT, operation="release.edit", flag=FLAG, errors=(409, 413))
async def edit_release(view: View, v: str, body: ReleaseEdit) -> Release:
    """Rewrite the notes of a release"""
    return await releases.edit(view, v, body.notes)


@serves(endpoints.DELETE, operation="release.delete", flag=FLAG, errors=(409,))
async def delete_release(view: View, v: str) -> Reply:
    """Delete a release and its assets"""
    await releases.delete(view, v)
    return Reply(status=204)


@serves(endpoints.ASSETS, operation="asset.list", flag=FLAG)
async def list_assets(view: View, v: str, query: PageQuery) -> Page[Asset]:
    """Assets of a release by name"""
    return await releases.assets(view, v, query)


@serves(
    endpoints.UPLOAD,
    operation="asset.upload",
    flag=FLAG,
    errors=(409, 413, 422),
    max_body=ASSET_FILE,
    stream=True,
)
async def upload_asset(view: View, v: str, query: AssetUpload, request: Request, upload: Upload) -> Asset:
    """Upload an asset as the body of the request, or with `manifest` as its chunks; its media type is the
    Content-Type. With `replaces` it takes the place of the asset of its name in one step"""
    media = media_type(request.headers.get("content-type"))
    return await releases.upload(view, v, query.name, media, upload, query.manifest, query.replaces)


@serves(endpoints.DOWNLOAD, operation="asset.get", flag=FLAG, media="*/*", others=(206, 304), errors=(416,))
async def download_asset(view: View, v: str, name: str) -> Reply:
    """The bytes of an asset; with ETag and ranges"""
    return await releases.download(view, v, name)


@serves(endpoints.DELETE_ASSET, operation="asset.delete", flag=FLAG, errors=(409,))
async def delete_asset(view: View, v: str, name: str) -> Reply:
    """Remove an asset"""
    await releases.delete_asset(view, v, name)
    return Reply(status=204)
