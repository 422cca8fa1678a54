"""The token signer as a process: what it mints, what it refuses, what happens when it dies."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from localstore.core.errors import Invalid, Unavailable
from localstore.core.identity.capability import Guard
from relay.signing import process
from relay.signing.client import LENGTH, SOCKET_NAME, Signer
from relay.signing.process import KEYS_NAME, Child


def body(**changes):
    asked = {
        "user": bytes(16),
        "session": bytes(16),
        "bound_key": None,
        "caps": ["read", "write"],
        "expires": datetime.now(UTC) + timedelta(hours=1),
    }
    return asked | changes


async def started(folder: Path) -> Child:
    """A signer of this data folder that answers."""
    child = await Child.start(folder)
    await child.wait_until_it_listens()
    return child


async def test_it_mints_within_bounds_and_keeps_its_keys_private(tmp_path):
    child = await started(tmp_path)
    signer = Signer(tmp_path)
    try:
        raw = await signer.mint(**body())
        token = Guard(await signer.public_keys()).inspect(raw)
        assert token.capability.caps == {"read", "write"}
        for refused in (
            {"caps": ["root"]},
            {"expires": datetime.now(UTC) + timedelta(days=8)},
            {"expires": datetime.now(UTC) - timedelta(seconds=1)},
            {"user": b"short"},
            {"bound_key": b"short"},
        ):
            with pytest.raises(Invalid):
                await signer.mint(**body(**refused))
        for name in (KEYS_NAME, SOCKET_NAME):
            assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
        with pytest.raises(Unavailable):
            process.run(tmp_path)
    finally:
        await signer.close()
        await child.stop()


async def test_its_death_is_unavailable_and_its_return_is_noticed(tmp_path):
    child = await started(tmp_path)
    signer = Signer(tmp_path)
    keys = await signer.public_keys()
    child.process.kill()
    await child.stop()
    with pytest.raises(Unavailable):
        await signer.mint(**body())
    child = await started(tmp_path)
    raw = await signer.mint(**body())
    Guard(keys).inspect(raw)
    await signer.close()
    await child.stop()


async def test_it_ends_with_its_parent(tmp_path):
    child = await started(tmp_path)
    child.process.stdin.close()
    assert await child.process.wait() == 0
    assert not (tmp_path / SOCKET_NAME).exists()


async def test_tokens_of_a_rotated_key_still_verify(tmp_path):
    signer = Signer(tmp_path)
    child = await started(tmp_path)
    old = await signer.mint(**body())
    await child.stop()
    assert process.rotate(tmp_path) == 2
    child = await started(tmp_path)
    guard = Guard(await signer.public_keys())
    for raw in (old, await signer.mint(**body())):
        guard.inspect(raw)
    await signer.close()
    await child.stop()


async def test_noise_on_the_socket_disturbs_nobody(tmp_path):
    import asyncio

    child = await started(tmp_path)
    signer = Signer(tmp_path)
    for noise in (b"\xff" * 9, LENGTH.pack(3) + b"abc", LENGTH.pack(0), os.urandom(500)):
        reader, writer = await asyncio.open_unix_connection(tmp_path / SOCKET_NAME)
        writer.write(noise)
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()
    assert await signer.public_keys()
    await signer.close()
    await child.stop()
