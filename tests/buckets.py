"""Buckets of a real S3 server for tests: moto, one server for a run, or the one that TEST_S3_ENDPOINT names.

With TEST_OBJECTS=s3 in the environment every relay and every object store of the suite keeps its packs there,
each data folder in a bucket of its own. Processes that a test starts find server and buckets through the
environment. TEST_S3_ACCESS_KEY and TEST_S3_SECRET_KEY are those of a server that asks who comes;
TEST_S3_CONDITIONAL_PUT is `emulated` for one that cannot refuse to write a name twice. `scripts/s3_server.py`
starts servers that are real and tells these variables.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import secrets
from pathlib import Path
from typing import cast

import obstore
from obstore.store import S3Store

from relay.base.flags import CONDITIONAL_PUT, ConditionalPut
from relay.config import S3
from relay.objects.s3 import S3Packs

EVERYWHERE = os.environ.get("TEST_OBJECTS") == "s3"
PUT = cast(ConditionalPut, os.environ.get("TEST_S3_CONDITIONAL_PUT", "native"))
_ENDPOINT, _RUN = "TEST_S3_ENDPOINT", "TEST_S3_RUN"
_REGION = "us-east-1"


def endpoint() -> str:
    """The server; started where there is none, and told to the processes that this one starts."""
    if _ENDPOINT not in os.environ:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()  # its threads end with this process
        host, port = server.get_host_and_port()
        os.environ[_ENDPOINT] = f"http://{host}:{port}"
    os.environ.setdefault(_RUN, secrets.token_hex(4))
    return os.environ[_ENDPOINT]


def bucket(name: str = "") -> S3:
    """A bucket, made where it is missing; without a name an empty one."""
    where = S3(
        endpoint(),
        f"t{os.environ[_RUN]}{name or secrets.token_hex(8)}",
        _REGION,
        os.environ.get("TEST_S3_ACCESS_KEY", "key"),
        os.environ.get("TEST_S3_SECRET_KEY", "secret"),
    )
    _make(where)
    return where


@functools.cache
def bucket_of(folder: Path) -> S3:
    """The bucket that belongs to a data folder, also when another process opens it again."""
    return bucket(hashlib.blake2b(os.fsencode(folder), digest_size=8).hexdigest())


def _make(where: S3) -> None:
    """Buckets are made by operators; the relay, and its library, cannot."""
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3",
        endpoint_url=where.endpoint,
        region_name=where.region,
        aws_access_key_id=where.access_key,
        aws_secret_access_key=where.secret_key,
        config=Config(s3={"addressing_style": "path"}, proxies={}),
    )
    try:
        client.create_bucket(Bucket=where.bucket)
    except (client.exceptions.BucketAlreadyOwnedByYou, client.exceptions.BucketAlreadyExists):
        return


def variables(folder: Path) -> dict[str, str]:
    """Environment of a relay over the folder's bucket, where the whole suite asks for one."""
    return told(bucket_of(folder)) if EVERYWHERE else {}


def told(where: S3) -> dict[str, str]:
    """The bucket as a relay is told of it."""
    return {
        "S3_ENDPOINT": where.endpoint,
        "S3_BUCKET": where.bucket,
        "S3_REGION": where.region,
        "S3_ACCESS_KEY": where.access_key or "",
        "S3_SECRET_KEY": where.secret_key or "",
        CONDITIONAL_PUT: PUT,
    }


async def packs_of(folder: Path, s3: bool = EVERYWHERE) -> S3Packs | None:
    """Packs in the folder's bucket; None: in the folder itself."""
    return await packs(where=bucket_of(folder)) if s3 else None


async def packs(put: ConditionalPut = PUT, where: S3 | None = None) -> S3Packs:
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
