"""A real S3 server for tests (moto), in this process on a port of its own, and buckets in it.

With TEST_OBJECTS=s3 in the environment every relay and every object store of the suite keeps its packs there.
"""

from __future__ import annotations

import functools
import logging
import os
import secrets
from pathlib import Path

import obstore
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from relay.config import S3
from relay.flags import ConditionalPut
from relay.objects.s3 import S3Packs

EVERYWHERE = os.environ.get("TEST_OBJECTS") == "s3"


logging.getLogger("werkzeug").setLevel(logging.ERROR)


@functools.cache
def endpoint() -> str:
    """Started once a process; its threads end with it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


def bucket() -> S3:
    """An empty bucket."""
    import httpx

    name = f"b{secrets.token_hex(8)}"
    made = httpx.put(
        f"{endpoint()}/{name}",
        headers={"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request"},
        trust_env=False,
    )
    assert made.status_code == 200, made.text
    return S3(endpoint(), name, "us-east-1", "key", "secret")


@functools.cache
def bucket_of(folder: Path) -> S3:
    """The bucket that belongs to a data folder, also when it is opened again."""
    return bucket()


def variables(folder: Path) -> dict[str, str]:
    """Environment of a relay over the folder's bucket, where the whole suite asks for one."""
    if not EVERYWHERE:
        return {}
    where = bucket_of(folder)
    return {
        "S3_ENDPOINT": where.endpoint,
        "S3_BUCKET": where.bucket,
        "S3_ACCESS_KEY": where.access_key or "",
        "S3_SECRET_KEY": where.secret_key or "",
    }


async def packs_of(folder: Path, s3: bool = EVERYWHERE) -> S3Packs | None:
    """Packs in the folder's bucket; None: in the folder itself."""
    return await packs(where=bucket_of(folder)) if s3 else None


async def packs(put: ConditionalPut = "native", where: S3 | None = None) -> S3Packs:
    made = S3Packs(where or bucket(), put)
    await made.open("test")
    return made


def raw(where: S3) -> S3Store:
    """The bucket without us."""
    return S3Store(
        where.bucket,
        endpoint=where.endpoint,
        region=where.region,
        access_key_id=where.access_key,
        secret_access_key=where.secret_key,
        client_options={"allow_http": True},
    )


def sizes(where: S3) -> dict[str, int]:
    """Every object of the bucket."""
    return {one["path"]: one["size"] for page in obstore.list(raw(where)) for one in page}
