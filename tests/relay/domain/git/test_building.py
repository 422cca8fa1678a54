"""The bare repositories that git reads: killed while they are made, deleted, limited, made by two."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from localstore.core.errors import TooLarge
from localstore.core.model.limits import MIB
from relay.db.schema import tables
from relay.domain.git import build as building
from relay.domain.git import process, serving
from relay.domain.git.build import Unfinished, build
from relay.domain.git.cache import Cache, list_caches, size_of
from relay.node import Node
from tests.patience import until
from tests.relay.conftest import Account, Relay, two_relays
from tests.relay.domain.git.conftest import Git
from tests.relay.domain.live.live_world import World, world
from tests.relay.histories import create, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]
SEALS = 12
ROOT = Path(__file__).parents[4]
# Builds in a process of its own, in many small packs, and is killed before this step that reaches the disk.
KILLED = """
import asyncio, os, pathlib, signal, sys
from relay.domain.git import build, serving
from tests.relay.domain.live.live_world import opened

left = int(sys.argv[3])
build.BATCH, build.PACK_BYTES, build.LOOSE = 2, 3000, 3

def counted(call):
    def step(*arguments, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **named)
    return step

os.fsync, pathlib.Path.rename = counted(os.fsync), counted(pathlib.Path.rename)
build._join = counted(build._join)

async def run():
    async with opened(pathlib.Path(sys.argv[1])) as node:
        await serving.carry_on(node, sys.argv[2])
    print(-left)

asyncio.run(run())
"""


@pytest.fixture
async def sealed(tmp_path: Path) -> AsyncIterator[World]:
    """A public repository with some seals."""
    (tmp_path / "data").mkdir()
    async with world(tmp_path / "data") as made:
        await _publish(made.node, made.repo_id)
        device = await made.device()
        head = None
        for number in range(SEALS):
            await device.send(
                await device.create(f"d{number % 3}/{number}.txt", os.urandom(400).hex().encode())
            )
            head = (await device.seal(head)).id
        yield made


async def _publish(node: Node, repo_id: str) -> None:
    table = tables["repo"]
    async with node.db.write() as tx:
        await tx.run(update(table).where(table.c.id == repo_id).values({"class": "published_public"}))


def _cache(made: World) -> Cache:
    return Cache(made.node.config.data, made.repo_id)


async def _build(made: World, **settings: float) -> int:
    view = await serving.whole_view(made.node, made.repo_id)
    return await build(view, _cache(made), made.node.config.git_cache, **settings)


def _history(cache: Cache, to: Path) -> str:
    """Ids and trees of all commits, as a clone has them that git finds nothing wrong with."""
    shutil.rmtree(to, ignore_errors=True)
    _git("clone", "-q", "--no-local", "--bare", str(cache.folder), str(to))
    assert _git("-C", str(to), "fsck", "--strict") == ""
    return _git("-C", str(to), "log", "--format=%H %T %P", "main")


def _git(*words: str) -> str:
    environment = {**process.environment_of(), "PATH": os.environ["PATH"]}
    done = subprocess.run(["git", *words], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout


def _killed(made: World, step: int) -> tuple[int, int]:
    """Build in a process that is killed before this step. Its exit code, and how many steps there were."""
    words = [sys.executable, "-c", KILLED, str(made.node.config.data), made.repo_id, str(step)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    return done.returncode, int(done.stdout or 0)


async def test_killed_anywhere_it_goes_on(sealed: World, tmp_path: Path) -> None:
    """Whatever step a process was killed at, the next one makes the same history."""
    await _build(sealed)
    expected = _history(_cache(sealed), tmp_path / "expected")
    assert expected.count("\n") == SEALS
    assert _cache(sealed).evict()
    code, steps = await asyncio.to_thread(_killed, sealed, 10**6)
    steps += 10**6
    assert (code, _history(_cache(sealed), tmp_path / "clone")) == (0, expected)
    places = range(1, steps + 1, max(1, steps // 20))
    for number, place in enumerate(places):
        if number % 4 == 0:  # the others go on with what the one before left
            assert _cache(sealed).evict()
        await asyncio.to_thread(_killed, sealed, place)
        await _build(sealed)
        assert _history(_cache(sealed), tmp_path / "clone") == expected, place
        assert not [*_cache(sealed).packs.glob("tmp*")], place
        (_cache(sealed).folder / "current").unlink()


async def test_two_processes_build_at_once(sealed: World, tmp_path: Path) -> None:
    await asyncio.gather(*(asyncio.to_thread(_killed, sealed, 10**6) for _ in range(3)), _build(sealed))
    await _build(sealed)
    assert _history(_cache(sealed), tmp_path / "clone").count("\n") == SEALS


async def test_a_job_that_ran_out_of_time_is_followed_by_another(
    sealed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "BATCH", 5)
    with pytest.raises(Unfinished):
        await _build(sealed, seconds=0)
    assert len(_cache(sealed).read_exported()) == 5
    with pytest.raises(Unfinished):
        await _build(sealed, seconds=0)
    assert len(_cache(sealed).read_exported()) == 10
    await _build(sealed)
    assert _history(_cache(sealed), tmp_path / "clone").count("\n") == SEALS


async def test_what_lost_a_pack_is_made_anew(sealed: World, tmp_path: Path) -> None:
    """As after a loss of power."""
    await _build(sealed)
    expected = _history(_cache(sealed), tmp_path / "clone")
    for path in _cache(sealed).packs.glob("pack-*"):
        path.unlink()
    with pytest.raises(OSError, match="lack an object"):
        await _build(sealed)
    await _build(sealed)
    assert _history(_cache(sealed), tmp_path / "clone") == expected


async def test_what_was_read_longest_ago_is_deleted_first(sealed: World) -> None:
    """But for what somebody reads, or builds, now."""
    await _build(sealed)
    node = sealed.node
    for name, at in (("old", 1), ("older", 0), ("held", -1)):
        shutil.copytree(_cache(sealed).folder, node.config.data / "git" / f"{name}.git")
        os.utime(node.config.data / "git" / f"{name}.git/read", (at, at))
    held = Cache(node.config.data, "held").hold()
    try:
        object.__setattr__(node.config, "git_cache", 3 * size_of(_cache(sealed)))
        serving._make_room(node, sealed.repo_id)
        left = {one.repo_id for one in list_caches(node.config.data) if one.exists()}
        assert left == {sealed.repo_id, "old", "held"}
    finally:
        os.close(held)
    await serving.sweep(node)
    assert {one.repo_id for one in list_caches(node.config.data)} == {sealed.repo_id}, (
        "the others are no repositories"
    )


async def test_more_than_the_limit_is_refused_with_a_sentence(sealed: World) -> None:
    object.__setattr__(sealed.node.config, "git_cache", 1000)
    with pytest.raises(TooLarge):
        await _build(sealed)
    await serving.carry_on(sealed.node, sealed.repo_id)
    assert not _cache(sealed).exists()
    assert (_cache(sealed).refusal() or "").startswith("this repository has more than the 1000 bytes")


def test_it_goes_with_its_repository_and_is_kept_current(
    relay: Relay, git: Git, account: Maker, client: Client
) -> None:
    mine = own(account, client, visibility="public")
    mine.seal({"a": b"1"})
    cache = Cache(relay.folder, mine.id)
    git.clone(mine, "work")
    before = cache.read_fingerprint()
    mine.seal({"a": b"2"})
    until(lambda: cache.read_fingerprint() != before, "the cache follows, though nobody reads")
    ok(mine.http.delete(mine.url))
    until(lambda: not cache.exists(), "the cache is deleted")


def test_nobody_pays_who_never_uses_git(relay: Relay, account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public")
    mine.seal({"a": b"1"})
    assert not Cache(relay.folder, mine.id).exists()


def test_backups_leave_it_out(relay: Relay, git: Git, account: Maker, client: Client, tmp_path: Path) -> None:
    from relay.backup.make import make

    mine = own(account, client, visibility="public")
    mine.seal({"a": b"1"})
    git.clone(mine, "work")
    node = relay.node
    relay.run(make(relay.folder, node.db, node.objects.packs, tmp_path / "backup", lambda line: None))
    assert not [path for path in (tmp_path / "backup").rglob("*") if "git" in path.parts[-2:]]


def test_two_relays_give_the_same(tmp_path: Path, git: Git) -> None:
    """Who reads from one while the other builds, and from both at once."""
    with two_relays(tmp_path / "data") as (here, there):
        who = here.account("mira")
        with here.client(who) as http:
            mine = create(http, who, "shared", visibility="public")
            for number in range(5):
                mine.seal({f"f{number}": os.urandom(300)})
            heads = set()
            for at in (here, there):
                running = [
                    subprocess.Popen(
                        [
                            "git",
                            "clone",
                            "-q",
                            f"{at.url}/mira/shared.git",
                            str(tmp_path / f"{at.url[-5:]}{n}"),
                        ]
                    )
                    for n in range(3)
                ]
                assert [one.wait() for one in running] == [0, 0, 0]
                heads |= {git.head(f"{at.url[-5:]}{n}") for n in range(3)}
            mine.seal({"last": b"x"})
            git("pull", "-q", at=f"{there.url[-5:]}0")
    assert len(heads) == 1
    assert (tmp_path / f"{there.url[-5:]}0/last").read_bytes() == b"x"


@pytest.mark.usefixtures("rate_limits")
def test_a_build_does_not_wait_for_the_budget_of_another_repository(
    relay: Relay, account: Maker, client: Client
) -> None:
    """A build walks trees in turns; one of many large trees uses up the budget that pays for it."""
    greedy, modest = (own(account, client, visibility="public") for _ in range(2))

    async def seconds_owed() -> list[float]:
        views = [await serving.whole_view(relay.node, mine.id) for mine in (greedy, modest)]
        relay.node.share.count_spent(views[0].payer, 100.0)
        return [relay.node.share.seconds_owed(view.payer) for view in views]

    waits = relay.run(seconds_owed())
    assert [wait > 0 for wait in waits] == [True, False]


def test_a_new_handle_changes_no_id(relay: Relay, git: Git, account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public")
    mine.seal({"a": b"1"})
    git.clone(mine, "before")
    head = git.head("before")

    async def rename() -> None:
        table = tables["account"]
        async with relay.node.db.write() as tx:
            await tx.run(
                update(table).where(table.c.id == mine.owner.id).values(handle=f"x{mine.owner.handle}")
            )

    relay.run(rename())
    shutil.rmtree(relay.folder / "git" / f"{mine.id}.git")
    git("clone", "-q", f"{git.url}/x{mine.body['full_name']}.git", "after")
    assert git.head("after") == head
    assert git("log", "-1", "--format=%cn", at="after").strip() == mine.owner.handle


async def test_large_files(tmp_path: Path) -> None:
    """A file in chunks is a blob of its own pack, read in pieces."""
    (tmp_path / "data").mkdir()
    async with world(tmp_path / "data", kind="model") as made:
        await _publish(made.node, made.repo_id)
        data = os.urandom(17 * MIB)
        device = await made.device()
        name = await made.put_large(data)
        made_blob = device.make("set_blob", "weights", blake3=name, size=len(data))
        assert (await device.one(made_blob)).result == "ok"
        await device.seal(None)
        await _build(made)
        _history(_cache(made), tmp_path / "clone")
        shown = subprocess.run(
            ["git", "-C", tmp_path / "clone", "show", "main:weights"], capture_output=True, check=True
        )
        assert shown.stdout == data


async def test_versions_of_a_file_become_deltas(tmp_path: Path) -> None:
    """Also those that one pack was built with, and it alone."""
    (tmp_path / "data").mkdir()
    async with world(tmp_path / "data") as made:
        await _publish(made.node, made.repo_id)
        device = await made.device()
        text, head = os.urandom(200_000).hex(), None
        for number in range(8):
            await device.send(await device.create(f"v{number}", f"{number}\n{text}".encode()))
            head = (await device.seal(head)).id
        added = await _build(made)
        sizes = _cache(made).pack_sizes()
        assert len(sizes) == 1
        assert sum(sizes.values()) < added / 4
        assert _cache(made).read_joined() == set(sizes)
        await device.send(await device.create("last", b"more"))
        await device.seal(head)
        await _build(made)
        assert sizes.items() < _cache(made).pack_sizes().items(), "little is not joined at once"
        assert _history(_cache(made), tmp_path / "clone").count("\n") == 9


async def test_joining_that_fails_is_not_tried_by_each_build(
    sealed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends in time, the packs stay as they are, and git reads them."""
    runs = _count_runs(monkeypatch)
    _make_packs_small(monkeypatch)
    monkeypatch.setattr(building, "JOIN_SECONDS", 0.0)
    await _build(sealed)
    packs = _cache(sealed).pack_sizes()
    assert len(packs) > building.LOOSE
    assert _cache(sealed).read_joined() == set(packs)
    await _build(sealed)
    assert len(runs) == 1
    assert _history(_cache(sealed), tmp_path / "clone").count("\n") == SEALS


async def test_packs_are_not_joined_on_a_disk_that_is_nearly_full(
    sealed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_packs_small(monkeypatch)
    monkeypatch.setattr(building, "LOOSE", 10**6)
    await _build(sealed)
    cache, view = _cache(sealed), await serving.whole_view(sealed.node, sealed.repo_id)
    packs = cache.pack_sizes()
    with cache.building() as lock:
        assert lock is not None
        with monkeypatch.context() as full:
            full.setattr(sealed.node.reserve, "lacking", lambda: "1 MiB is free")
            await building._join(view, cache, lock)
        assert (cache.pack_sizes(), cache.read_joined()) == (packs, set())
        await building._join(view, cache, lock)
    assert len(cache.read_joined()) == len(cache.pack_sizes()) == 1


async def test_packs_that_count_as_joined_were_compared_within_too(
    sealed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = _count_runs(monkeypatch)
    _make_packs_small(monkeypatch)
    await _build(sealed)
    (words,) = runs
    assert "-f" in words
    assert _cache(sealed).read_joined() == set(_cache(sealed).pack_sizes())


def _make_packs_small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BATCH": 2, "GROUP": (1, 1), "PACK_BYTES": 1000, "LOOSE": 3}.items():
        monkeypatch.setattr(building, name, value)


def _count_runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The words of each run of git to its end, from now on."""
    runs: list[tuple[str, ...]] = []
    run = process.run

    def counted(*words: str, seconds: float, locks: tuple[int, ...] = ()) -> None:
        runs.append(words)
        run(*words, seconds=seconds, locks=locks)

    monkeypatch.setattr(process, "run", counted)
    return runs
