"""A relay killed in a merge's transaction has merged nothing, and merges it when asked again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.merge import MergeFinalizeRequest, MergePrepareRequest
from localstore.core.model.proposal import ProposalCreate, ProposalPatch
from localstore.core.model.ref import RefCreate
from localstore.core.model.seal import FinalizeSealsRequest, PrepareSealsRequest, SealChange, TreeDelta
from relay.domain.merging import auto, prepare
from relay.domain.merging import merge as finalize
from relay.domain.proposal import proposal
from relay.domain.repository import ref
from relay.domain.sealing import trees
from tests.relay.domain.live.live_world import Device, World, opened, world


async def sealed(a: Device, branch: str, path: str, content: bytes) -> str:
    """Seal one file more onto the branch."""
    digest = await a.world.put(content)
    head = (await ref.get(a.view, "branch", branch)).head
    change = SealChange(path=path, kind="text", digest=digest, size=len(content))
    sent = PrepareSealsRequest(
        branch=branch,
        device_key_id=a.key.id,
        expected_head=head,
        seals=[TreeDelta(message=path, changes=[change])],
    )
    prepared = await trees.prepare(a.view, sent)
    signed = [b64u(a.key.sign(unb64u(one.bytes))) for one in prepared.seals]
    done = FinalizeSealsRequest(prepare_id=prepared.prepare_id, device_key_id=a.key.id, signatures=signed)
    return (await trees.finalize(a.view, done)).items[-1].id


async def child(folder: Path) -> None:
    """Prepare and sign a merge, say so, and be killed when all of it is written and not committed."""
    async with world(folder) as w:
        a = await w.device()
        first = await sealed(a, "main", "first", b"1\n")
        await ref.create(a.view, RefCreate(type="branch", name="topic", head=first))
        await sealed(a, "topic", "theirs", b"2\n")
        await sealed(a, "main", "ours", b"3\n")
        await proposal.create(a.view, ProposalCreate(head="topic", base="main", title="t"))
        sent = MergePrepareRequest(device_key_id=a.key.id, strategy="squash")
        prepared = await prepare.merge(a.view, "1", sent)
        done = MergeFinalizeRequest(
            prepare_id=prepared.prepare_id,
            device_key_id=a.key.id,
            signatures=[b64u(a.key.sign(unb64u(one.bytes))) for one in prepared.seals],
            delete_branch=True,
        )
        told = [w.repo_id, w.branch_id, w.owner, a.key.seed.hex(), done]
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()

        async def killed(*_: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        finalize.to_wire = killed
        await finalize.merge(a.view, "1", done)


async def waiting_child(folder: Path) -> None:
    """Keep a merge that waits, fulfil its last condition, and be killed in the landing."""
    async with world(folder) as w:
        a = await w.device()
        auto.register(w.node)
        await w.node.followers.start()
        first = await sealed(a, "main", "first", b"1\n")
        await ref.create(a.view, RefCreate(type="branch", name="topic", head=first))
        await sealed(a, "topic", "theirs", b"2\n")
        await proposal.create(a.view, ProposalCreate(head="topic", base="main", title="t", draft=True))
        sent = MergePrepareRequest(device_key_id=a.key.id, strategy="squash", auto=True)
        prepared = await prepare.merge(a.view, "1", sent)
        done = MergeFinalizeRequest(
            prepare_id=prepared.prepare_id,
            device_key_id=a.key.id,
            signatures=[b64u(a.key.sign(unb64u(one.bytes))) for one in prepared.seals],
        )
        await auto.enable(a.view, "1", done)
        await proposal.update(a.view, "1", ProposalPatch(draft=False))
        told = [w.repo_id, w.branch_id, w.owner, a.key.seed.hex(), done]
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()

        async def killed(*_: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        finalize.to_wire = killed
        await auto.land_all(w.node, w.repo_id)


async def test_a_kill_between_the_condition_and_the_landing_lands_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.relay.domain.merging.test_merge_crash", str(tmp_path), "waiting"],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    repo_id, branch_id, owner, seed, done = msgspec.json.decode(line)
    async with opened(tmp_path) as node:
        w = World(node, repo_id, branch_id, owner)
        a = Device(w, DeviceKey.generate(bytes.fromhex(seed)), await w.view(owner))
        before = await proposal.get(a.view, "1")
        assert (before.state, before.merged_seal) == ("open", None)
        assert before.auto_merge is not None
        auto.register(node)
        while await node.followers.handle_next(auto.NAME):
            pass
        while await node.jobs.run_due():
            pass
        after = await proposal.get(a.view, "1")
        assert (after.state, after.auto_merge) == ("merged", None)
        assert (await ref.get(a.view, "branch", "main")).head == after.merged_seal == done["prepare_id"]


async def test_a_kill_before_the_commit_merges_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass  # the database outlives the process
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.relay.domain.merging.test_merge_crash", str(tmp_path)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    repo_id, branch_id, owner, seed, done = msgspec.json.decode(line)
    async with opened(tmp_path) as node:
        w = World(node, repo_id, branch_id, owner)
        a = Device(w, DeviceKey.generate(bytes.fromhex(seed)), await w.view(owner))
        body = msgspec.convert(done, MergeFinalizeRequest)
        before = await proposal.get(a.view, "1")
        assert (before.state, before.merged_seal) == ("open", None)
        assert (await ref.get(a.view, "branch", "main")).head == before.base_seal
        after = await finalize.merge(a.view, "1", body)
        assert after.state == "merged"
        head = (await ref.get(a.view, "branch", "main")).head
        assert head == after.merged_seal == body.prepare_id
        assert await w.files(head) == {"first": b"1\n", "ours": b"3\n", "theirs": b"2\n"}
        assert (await finalize.merge(a.view, "1", body)).merged_seal == head


if __name__ == "__main__":
    asyncio.run((waiting_child if "waiting" in sys.argv else child)(Path(sys.argv[1])))
