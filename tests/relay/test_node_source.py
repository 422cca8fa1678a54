"""A node hands out the source code it runs."""

from __future__ import annotations

import io
import tarfile

import httpx

from tests.relay.conftest import Relay


def test_the_source_link_leads_to_the_running_code(relay: Relay) -> None:
    link = httpx.get(f"{relay.url}/version").json()["source_url"]
    assert link == f"{relay.url}/source.tar.gz"
    packed = httpx.get(link)
    assert packed.headers["content-type"] == "application/gzip"
    with tarfile.open(fileobj=io.BytesIO(packed.content)) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
        folder = tar.getnames()[0].partition("/")[0]
        licence = tar.extractfile(f"{folder}/LICENSE")
        assert licence is not None
        assert b"GNU AFFERO GENERAL PUBLIC LICENSE" in licence.read()
    assert {"relay/domain/upkeep/routes.py", "localstore/core/seal.py", "svc/__main__.py"} <= names
    assert httpx.get(link).content == packed.content
    name = packed.headers["etag"]
    assert name == f'"{name[1:-1]}"'
    assert httpx.get(link, headers={"If-None-Match": name}).status_code == 304
    rest = httpx.get(link, headers={"Range": "bytes=9-", "If-Range": name})
    assert (rest.status_code, rest.content) == (206, packed.content[9:])
