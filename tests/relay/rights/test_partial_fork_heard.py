"""What the owner of a partial fork hears of it by socket and webhook."""

from __future__ import annotations

import asyncio
import json

import httpx
from blake3 import blake3
from websockets.asyncio.client import connect

from localstore.core.model.sync import PROTOCOL
from tests.patience import PATIENCE
from tests.relay.conftest import Relay
from tests.relay.histories import ok
from tests.relay.receiver import receiving
from tests.relay.rights.observing import socket_of
from tests.relay.rights.parted import Fork


async def test_its_owner_hears_nothing_of_what_is_hidden(relay: Relay) -> None:
    """On a channel of the branch, of events of both repositories, and in the messages of webhooks, while the
    origin's owner seals hidden files and others work on the fork."""
    fork = Fork(relay, "hears", more=False)
    secret = b"sealed out of sight\n"
    url, headers = socket_of(relay, fork.maker)
    live = f"{fork.repo.url}/branches/main/live"
    start = ok(fork.mine.post(f"{live}/bootstrap", json={"device_key_id": fork.maker.key.id}))

    def work() -> None:
        fork.origin.seal({"vault/typed.txt": secret}, {"vault/typed.txt": None})
        for files in ({"open/readme.txt": b"another\n"}, {"mixed/seen.txt": None, "vault": b"a file\n"}):
            fork.repo.seal(files)
        fork.repo.edit(fork.maker.key, "mixed/typed.txt", b"alive\n")

    said: list[str] = []
    with receiving() as hooks:
        body = {"url": f"{hooks.url}/ok/fork", "events": ["push"]}
        ok(fork.mine.post(f"{fork.repo.url}/webhooks", json=body))
        async with connect(url, subprotocols=[PROTOCOL], additional_headers=headers, proxy=None) as socket:
            opened = {"channel": 1, "repo_id": fork.repo.id, "branch": "main", "since": 0}
            opened |= {"replica": start["replica"], "device_key_id": fork.maker.key.id}
            for repo in (fork.repo, fork.origin):
                await socket.send(json.dumps({"type": "subscribe", "repo_id": repo.id}))
            await socket.send(json.dumps({"type": "open", **opened}))
            while not any(json.loads(one)["type"] in ("opened", "refused") for one in said):
                said.append(str(await asyncio.wait_for(socket.recv(), PATIENCE)))
            assert '"opened"' in "".join(said)
            await asyncio.to_thread(work)
            while sum('"seal.create"' in one for one in said) < 3:
                said.append(str(await asyncio.wait_for(socket.recv(), PATIENCE)))
        got = await asyncio.to_thread(hooks.wait, 2)
    told = "\n".join(said).encode() + b"".join(one.body for one in got)
    fork.told.pop("name of the folder")  # the fork has made a file of this name
    assert fork.told_by(httpx.Response(200, content=told), "") == []
    assert blake3(secret).hexdigest().encode() not in told
    assert b"typed" not in told.replace(b"mixed/typed.txt", b"")
