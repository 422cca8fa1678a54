"""Random histories of several devices, at the services: nothing acknowledged is lost, seals form a chain."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from localstore.core.encoding import b64u, unb64u
from localstore.core.lane.carry import carry
from localstore.core.lane.lane import Lane
from localstore.core.model.live import LaneState, UpdateAnswer
from localstore.core.model.ref import RefCreate, StaleHead
from relay.domain.repository import ref as refs
from relay.domain.upkeep import verification
from tests.relay.domain.live.live_world import Device, World, world

PATHS = ("a", "d/b", "d/c")
STEPS = 60
FIRST = 0x4E00  # a word is one character of three bytes: no difference of texts can cut it


class Story:
    """Devices add unique words to files; words are removed by nobody, so each one acknowledged must stay."""

    def __init__(self, w: World, seed: int) -> None:
        self.w, self.dice = w, random.Random(seed)
        self.words = 0
        self.acknowledged: dict[int, set[bytes]] = {}  # lane → words
        self.chain: list[str] = []
        self.epochs: dict[tuple[int, int], int] = {}  # (replica, lane) → epoch of the device's copy

    def word(self) -> bytes:
        self.words += 1
        return chr(FIRST + self.words).encode()

    async def text_now(self, device: Device) -> dict[str, tuple[int, bytes]]:
        """Every file and its text, rebuilt from what the relay tells."""
        found = {}
        for row in (await device.bootstrap()).rows:
            found[row.path] = (row.gen, (await device.fetch(row.path, row.gen))[1].text())
        return found

    async def edit(self, device: Device, path: str) -> None:
        """Insert a word into the lane as this device has it, hopping over epochs as the protocol says."""
        rows = {row.path: row for row in (await device.bootstrap()).rows}
        word = self.word()
        if path not in rows:
            answer = await device.one(await device.create(path, word))
            assert answer.result == "ok"
            self.acknowledged[answer.gen] = {word}
            return
        gen = rows[path].gen
        epoch, lane = await self.known(device, path, gen)
        text = lane.text()
        at = 3 * self.dice.randint(0, len(text) // 3)
        update = device.edit(path, lane, gen, text[:at] + word + text[at:], epoch=epoch)
        answer = await device.one(update)
        assert answer == await device.one(update)
        if answer.result == "epoch":
            answer = await self.hop(device, path, gen, epoch, unb64u((update.ops or [""])[0]))
        if answer.result == "ok":
            self.acknowledged[gen].add(word)

    async def known(self, device: Device, path: str, gen: int) -> tuple[int, Lane]:
        """The device's own copy of the lane, often an old one."""
        held = device.lanes.get(gen)
        if held is None or self.dice.random() < 0.5:
            state, lane = await device.fetch(path, gen)
            device.lanes[gen] = lane
            self.epochs[(device.replica, gen)] = state.epoch
        return self.epochs[(device.replica, gen)], device.lanes[gen]

    async def hop(self, device: Device, path: str, gen: int, epoch: int, pending: bytes) -> UpdateAnswer:
        """Carry an operation of an old epoch through the kept last states into the current one, and send it.
        Where a state was dropped it is given up: it was never acknowledged."""
        state, current = await device.fetch(path, gen, epoch=epoch)
        device.lanes[gen], self.epochs[(device.replica, gen)] = current, state.epoch
        refused = UpdateAnswer(n=0, result="stale")
        for old in range(epoch, state.epoch):
            if str(old) not in state.finals:
                return refused
            following = await self.start_of(device, gen, old + 1, state)
            last = Lane.load(unb64u(state.finals[str(old)].state or ""))
            carried = carry(last, [pending], device.replica, following)
            assert carried is not None
            pending = carried
        current.apply(pending, device.replica)
        hopped = device.make("edit_text", path, gen, epoch=state.epoch, ops=[b64u(pending)], typed=True)
        return await device.one(hopped)

    async def start_of(self, device: Device, gen: int, epoch: int, state: LaneState) -> Lane:
        final = state.finals.get(str(epoch))
        blob = final.genesis if final else state.genesis
        data = await self.w.node.objects.read(bytes.fromhex(blob), self.w.repo_id)
        return Lane.genesis(device.branch_id, gen, epoch, data)

    async def delete(self, device: Device, path: str) -> None:
        rows = {row.path: row for row in (await device.bootstrap()).rows}
        if path not in rows:
            return
        base = self.dice.choice([rows[path].gen, rows[path].ver])
        answer = await device.one(device.delete(path, rows[path].gen, base))
        if answer.result == "ok":
            self.acknowledged.pop(rows[path].gen)

    async def seal(self, device: Device, other: Device) -> None:
        head = self.chain[-1] if self.chain else None
        prepared = await device.prepare(head)
        if prepared.unchanged:
            return
        frozen = {path: text for path, (_, text) in (await self.text_now(device)).items()}
        if self.dice.random() < 0.5:
            await self.edit(other, self.dice.choice(PATHS))
        if self.dice.random() < 0.2:
            rival = await other.prepare(head)
            await other.finalize(rival)
            with pytest.raises(StaleHead):
                await device.finalize(prepared)
            self.chain.append(rival.digest)
            return
        made = await device.finalize(prepared)
        assert made.parents == ([head] if head else [])
        assert await self.w.files(made.id) == frozen
        self.chain.append(made.id)

    async def branch_off(self, devices: list[Device]) -> None:
        """Go on upon a new branch, whose files have no rows yet."""
        head = (await devices[0].seal()).id
        await refs.create(devices[0].view, RefCreate(type="branch", name="side", head=head))
        for device in devices:
            device.branch, device.replica, device.lanes = "side", 0, {}
            await device.bootstrap()
        found = await self.text_now(devices[0])
        self.acknowledged = {gen: {word.encode() for word in text.decode()} for gen, text in found.values()}
        self.chain.append(head)

    async def check(self, device: Device) -> None:
        found = dict((await self.text_now(device)).values())
        assert found.keys() == self.acknowledged.keys()
        for gen, words in self.acknowledged.items():
            assert sorted(found[gen].decode()) == sorted(word.decode() for word in words)


@pytest.mark.parametrize("branched", [False, True])
@pytest.mark.parametrize("seed", range(6))
async def test_what_was_acknowledged_survives_and_seals_are_the_frontier(
    tmp_path: Path, seed: int, branched: bool
) -> None:
    async with world(tmp_path) as w:
        story = Story(w, seed)
        devices = [await w.device(), await w.device(), await w.device(await w.account())]
        if branched:
            for path in PATHS * 2:
                await story.edit(devices[0], path)
            await story.branch_off(devices)
        for _ in range(STEPS):
            device, other = story.dice.sample(devices, 2)
            dice = story.dice.random()
            if dice < 0.7:
                await story.edit(device, story.dice.choice(PATHS))
            elif dice < 0.8:
                await story.delete(device, story.dice.choice(PATHS))
            else:
                await story.seal(device, other)
            if story.dice.random() < 0.1:
                w.node.lanes.forget(list(w.node.lanes._lanes))
        await story.check(devices[0])
        assert [line async for line in verification.frontier.check(w.node.db, w.node.objects)] == []
        assert story.chain
