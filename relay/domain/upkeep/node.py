"""The node's reports about itself: liveness, readiness, version, flags."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import hmac
import io
import os
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import metadata
from pathlib import Path

from msgspec.structs import replace

from localstore.core.errors import NotFound, Unavailable
from localstore.core.model.limits import KIB
from localstore.core.model.node import ClientConfig, E2ee, Health, NodeInfo, RelayVersion
from relay.base import edition, flags, git
from relay.base.clock import now_ms
from relay.base.logs import logger
from relay.caller import Caller
from relay.config import Config
from relay.db.storage import usage
from relay.domain.upkeep.rows import node as rows
from relay.http.routing import TABLE
from relay.migrations import HEAD
from relay.node import Node

PROBE_BYTES = 16 * KIB  # more than a file system stores inside an inode
ROOMS = ("svc", "tui", "relay", "localstore", "llm")
BESIDE = ("pyproject.toml", "requirements.lock", "README.md")  # in a checkout only
LICENCE = "licenses/LICENSE"  # in the metadata of every installation
SOURCES = {".py", ".html", ".css", ".mako", ".ini", ".md", ".toml"}
Check = Callable[[Node], Awaitable[None]]


async def check_ready(node: Node) -> Health:
    """Check whether the node can serve requests. It can if the database accepts a write and the node is not
    stopping."""
    return await _run_checks(node, {"database": _check_database, "sync": _sync})


async def node_ready(node: Node) -> Health:
    """Check the readiness of the whole node, for a reverse proxy and for upgrades. With too little disk space
    it is degraded and reports `space: low`; pushes are then refused, but clients can still read, delete and
    sign in."""
    checks: dict[str, Check] = {
        "database": _check_database,
        "sync": _sync,
        "data_folder": _data_folder,
        "object_store": _object_store,
        "signer": _check_signer,
        "schema": _check_schema,
    }
    if _describe_e2ee(node).status != "disabled":
        checks["e2ee"] = _e2ee_processes
    health = await _run_checks(node, checks)
    with contextlib.suppress(OSError):
        low = node.reserve.lacking() is not None
        health.checks["space"] = "low" if low else "ok"
        if low and health.status == "ok":
            return replace(health, status="degraded")
    return health


def describe_version(node: Node) -> RelayVersion:
    return RelayVersion(
        edition=edition.EDITION,
        api_version=edition.API_VERSION,
        source_url=node.config.source_url,
        version=edition.VERSION,
        commit=edition.COMMIT,
        built_at=edition.BUILT_AT,
        min_client=edition.MIN_CLIENT,
    )


def client_config(node: Node) -> ClientConfig:
    config = node.config
    return ClientConfig(
        api_version=edition.API_VERSION,
        flags=_client_flags(config),
        node=NodeInfo(
            name=config.node_name,
            identity=config.public_url,
            edition=config.edition,
            screening="unscreened",  # no edition of this build looks at what is uploaded
            source_url=config.source_url,
            e2ee=_describe_e2ee(node),
            sign_in=_sign_in_methods(node),
        ),
        git=config.flags.on("TR_REPOS_ENABLED") and git.find_program() is not None,
    )


async def pack_source() -> bytes:
    """The source code of this node as a gzip tarball. The same code always gives the same bytes."""
    return await asyncio.to_thread(_pack_source)


@functools.cache
def _pack_source() -> bytes:
    root = Path(__file__).resolve().parents[3]
    files = sorted(file for room in ROOMS for file in (root / room).rglob("*") if file.suffix in SOURCES)
    contents = {file.relative_to(root).as_posix(): file for file in files}
    contents |= {name: root / name for name in BESIDE if (root / name).is_file()}
    for installed in metadata.files("svc") or ():
        if installed.match(LICENCE):
            contents["LICENSE"] = Path(str(installed.locate()))
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for name, file in sorted(contents.items()):
            data = file.read_bytes()
            entry = tarfile.TarInfo(f"svc-{edition.VERSION}/{name}")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


async def read_gauges(caller: Caller, loopback: bool, secret: str | None) -> dict[str, float]:
    """Read the current values for the metrics. Raises NotFound unless the request comes from this machine or
    has the admin secret."""
    admin = caller.node.config.secrets.admin
    comparable = admin is not None and secret is not None
    if not loopback and not (comparable and hmac.compare_digest(str(admin).encode(), str(secret).encode())):
        raise NotFound
    async with caller.read() as tx:
        return {
            "repositories": float(await tx.value(rows.REPOSITORIES)),
            "seals": float(await tx.value(rows.SEALS)),
            "objects": float(await tx.value(rows.OBJECTS)),
            "pack_bytes": float(await tx.value(rows.PACK_BYTES) or 0),
            "jobs_waiting": float(await tx.value(rows.JOBS_WAITING)),
        }


async def _run_checks(node: Node, checks: dict[str, Check]) -> Health:
    states = {}
    for name, check in checks.items():
        try:
            await check(node)
            states[name] = "ok"
        except Exception:
            logger().warning("check failed", check=name, exc_info=True)
            states[name] = "down"
    well = not node.stopping and "down" not in states.values()
    return Health(status="ok" if well else "unavailable", checks=states)


async def _check_database(node: Node) -> None:
    await node.probes.look("database", partial(_write_heartbeat, node))


async def _write_heartbeat(node: Node) -> None:
    """Write to the database. This is needed because on a full disk the database can be read but not
    written."""
    now = now_ms()
    async with node.db.write() as tx:
        if not await tx.run(usage.BEAT, now=now):
            await tx.many(usage.BEAT_FIRST, [{"id": 1, "at": now}])


async def _data_folder(node: Node) -> None:
    await node.probes.look("data_folder", partial(asyncio.to_thread, _write_probe, node.config.data))


def _write_probe(folder: Path) -> None:
    """Write a small file to the folder, sync it and delete it."""
    fd, name = tempfile.mkstemp(prefix=".ready-", dir=folder)
    try:
        os.write(fd, bytes(PROBE_BYTES))
        os.fsync(fd)
    finally:
        os.close(fd)
        Path(name).unlink()


async def _sync(node: Node) -> None:
    if node.stopping:
        raise Unavailable("the node is stopping")


async def _object_store(node: Node) -> None:
    await node.probes.look("object_store", node.objects.packs.check)


async def _check_signer(node: Node) -> None:
    await node.signer.public_keys()


async def _check_schema(node: Node) -> None:
    if (await node.db.schema_version() or "") < HEAD:
        raise Unavailable("the schema is not this build's")


async def _e2ee_processes(node: Node) -> None:
    raise Unavailable("the mode-5 processes are not running")


def _describe_e2ee(node: Node) -> E2ee:
    scopes = node.config.e2ee
    if not (scopes.single_user or scopes.org or scopes.private):
        return E2ee(status="disabled")
    return E2ee(
        status="unavailable",
        reason="the mode-5 processes are not running",
        single_user=scopes.single_user,
        org=scopes.org,
        private=scopes.private,
    )


def _sign_in_methods(node: Node) -> list[str]:
    """List the sign-in methods that work. Each identity provider is listed as `oidc:` and its name."""
    ways = ["guest", "local", *(f"oidc:{provider.name}" for provider in node.providers.all)]
    return [*ways, "device_key"] if node.config.device_key_sign_in else ways


def _client_flags(config: Config) -> dict[str, bool | str]:
    """The feature flags for clients. A flag is on if it is on for this node and this build implements it."""
    built = {route.flag for route in TABLE} | flags.WITHOUT_ROUTES
    return {name: config.flags.on(name) and name in built for name in flags.DEFAULTS} | {
        flags.CONDITIONAL_PUT: config.flags.conditional_put
    }
