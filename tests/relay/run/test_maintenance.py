"""gc, audit, backup, restore as an operator runs them: beside a relay, without one, killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import threading
import time

import pytest

from localstore.core.model.limits import MIB
from relay.backup import files, manifest
from relay.objects.packs import PackFiles
from relay.run import admin
from relay.run.maintenance import Maintenance
from tests import buckets, databases
from tests.depth import rounds
from tests.relay import places
from tests.relay.histories import own
from tests.relay.places import Place, more


@pytest.fixture
def filled(tmp_path):
    return places.filled(tmp_path / "data")


def lose_a_pack(place: Place) -> None:
    async def lose() -> None:
        async with place.opened() as (db, store):
            name = (await places.rows(db, "pack"))[-1][1]
            await store.packs.delete([name])

    asyncio.run(lose())


def test_beside_a_running_relay(relay, account, client, tmp_path, capsys):
    own(account, client).seal({"a.txt": b"one\n", "b.bin": b"\0" * 70_000}, {"a.txt": b"two\n"})
    config = relay.node.config
    here = Place(relay.folder, config.database_url, config.storage.s3)
    assert stat.S_IMODE((relay.folder / admin.SOCKET_NAME).stat().st_mode) == 0o600
    assert here.relay("audit") == 0
    assert here.relay("gc", "--dry-run") == 0
    assert here.relay("gc") == 0
    host_key = relay.folder / "ssh_host_key"
    host_key.write_bytes(b"the host key\n")
    assert here.relay("backup", tmp_path / "backup") == 0
    host_key.unlink()
    out = capsys.readouterr().out
    for said in ("no errors were found", "are referred to", "secrets"):
        assert said in out
    new = places.empty(tmp_path / "new")
    assert new.relay("restore", tmp_path / "backup") == 0
    assert new.findings() == []
    assert (new.data / "signer.keys").read_bytes() == (relay.folder / "signer.keys").read_bytes()
    assert (new.data / "ssh_host_key").read_bytes() == b"the host key\n"
    for top in (tmp_path / "new", tmp_path / "backup"):
        for path in (top, *top.rglob("*")):
            wanted = 0o700 if path.is_dir() else 0o600
            assert stat.S_IMODE(path.stat().st_mode) == wanted or path.name == "backup.lock", path


def test_the_socket_answers_nonsense_in_one_line(relay):
    async def ask(raw: bytes) -> dict[str, str]:
        reader, writer = await asyncio.open_unix_connection(relay.folder / admin.SOCKET_NAME)
        writer.write(raw)
        answer = {"line": ""}
        while "line" in answer:
            answer = json.loads(await reader.readline())
        writer.close()
        return answer

    for raw in (b"\n", b"{}\n", b'{"do":"rm"}\n', b'{"do":"gc","dry_run":"x"}\n', b"\xff\n"):
        assert "cannot be read" in asyncio.run(ask(raw))["error"]
    refused = asyncio.run(ask(b'{"do":"backup","folder":"%s"}\n' % os.fsencode(relay.folder)))
    assert "is inside the data folder" in refused["error"]


def test_ctrl_c_is_one_line(filled, tmp_path, capsys, monkeypatch):
    async def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Maintenance, "backup", stop)
        assert filled.relay("backup", tmp_path / "b") == 130
    assert capsys.readouterr().err == "relay: interrupted\n"
    assert filled.relay("backup", tmp_path / "b") == 0


def test_without_a_relay(filled, tmp_path, capsys):
    assert filled.relay("audit") == 0
    assert filled.relay("backup", tmp_path / "b") == 0
    first = manifest.read(tmp_path / "b")
    assert filled.relay("backup", tmp_path / "b") == 0
    second = manifest.read(tmp_path / "b")
    assert (tmp_path / "b/.svc").is_file(), "no working copy takes it"
    assert first.packs == second.packs != []
    assert f" {second.database.size} of them new" in capsys.readouterr().out
    assert not (tmp_path / "b" / first.id).exists()
    assert places.empty(tmp_path / "nothing").relay("audit") == 1
    asyncio.run(more(filled))
    lose_a_pack(filled)
    assert filled.relay("audit") == 1
    assert filled.relay("backup", tmp_path / "b") == 1
    assert manifest.read(tmp_path / "b") == second


@pytest.mark.skipif(databases.POSTGRES, reason="the files of PostgreSQL are its server's")
def test_a_zeroed_page_of_the_database_is_a_finding(filled, capsys):
    """Of each page in turn: whatever lies there, no command ends in a traceback."""
    path = filled.data / "relay.db"
    whole, size = path.read_bytes(), 4096
    found = 0
    for page in range(1, len(whole) // size, 7):
        path.write_bytes(whole[: page * size] + bytes(size) + whole[(page + 1) * size :])
        assert filled.relay("audit") in (0, 1)
        said = capsys.readouterr()
        assert "Traceback" not in said.out + said.err
        found += "relay restore" in said.out + said.err
    assert found


def test_an_unfinished_backup_is_continued(filled, tmp_path, capsys):
    """Packs that an earlier attempt has copied are taken over, and so is one of their half-written ones."""
    assert filled.relay("backup", tmp_path / "b") == 0
    made = manifest.read(tmp_path / "b")
    (tmp_path / "b" / manifest.MANIFEST).unlink()
    shutil.rmtree(tmp_path / "b" / made.id)
    lost = tmp_path / "b" / manifest.OBJECTS / made.packs[0].file
    lost.replace(lost.with_name(lost.name + ".new"))
    capsys.readouterr()
    assert filled.relay("backup", tmp_path / "b") == 0
    again = manifest.read(tmp_path / "b")
    assert again.packs == made.packs
    assert f" {again.database.size + made.packs[0].size} of them new" in capsys.readouterr().out


def test_a_restore_takes_nothing_damaged_nothing_outside_and_no_place_in_use(filled, tmp_path, capsys):
    saved = tmp_path / "b"
    assert filled.relay("backup", saved) == 0
    assert filled.relay("backup", filled.data) == 1
    new = places.empty(tmp_path / "new")
    assert filled.relay("restore", saved) == 1
    assert "not empty" in capsys.readouterr().err
    assert Place(new.data, filled.url, new.s3).relay("restore", saved) == 1
    assert "not empty" in capsys.readouterr().err
    told = json.loads((saved / "manifest.json").read_text())
    outside = [
        told | {"private": [{**told["private"][0], "path": "../x"}]},
        told | {"packs": [{**told["packs"][0], "name": "../x"}]},
        told | {"id": ".."},
        told | {"v": 1},
        told | {"revision": "9999"},
        told | {"revision": "0037"},
        {"v": 2},
    ]
    for wrong in outside:
        (saved / "manifest.json").write_text(json.dumps(wrong))
        assert new.relay("restore", saved) == 1
        assert len(capsys.readouterr().err.splitlines()) == 1
    (saved / "manifest.json").write_text(json.dumps(told))
    for damaged in (next((saved / "objects").iterdir()), saved / told["id"] / "database"):
        whole = damaged.read_bytes()
        damaged.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        assert new.relay("restore", saved) == 1
        assert "damaged" in capsys.readouterr().err
        damaged.write_bytes(whole)
    assert not new.data.exists()
    assert new.relay("restore", saved) == 0
    assert new.findings() == []


def test_killed_in_the_middle_of_backup_restore_and_gc(filled, tmp_path):
    """At any moment: the backup folder holds a whole backup, the new node is whole or none, and the collector
    has lost nothing."""
    chance = random.Random(5)
    saved = tmp_path / "b"
    assert filled.relay("backup", saved) == 0
    for number in range(rounds(2, 4)):
        asyncio.run(more(filled))
        kill(filled.process("backup", saved), chance)
        restored = places.empty(tmp_path / f"r{number}")
        assert restored.relay("restore", saved) == 0
        assert restored.findings() == []
        new = places.empty(tmp_path / f"k{number}")
        kill(new.process("restore", saved), chance)
        if new.relay("audit") != 0:  # nothing is there, or the folder without its database
            shutil.rmtree(new.data, ignore_errors=True)
            assert new.relay("restore", saved) == 0
        assert new.findings() == []
        filled.age()
        kill(filled.process("gc"), chance)
        assert filled.findings() == []
    done = filled.process("gc")
    assert done.communicate()[0].count("\n") == 3
    assert done.returncode == 0
    assert filled.findings() == []


def kill(process: subprocess.Popen[str], chance: random.Random) -> None:
    time.sleep(0.35 + chance.random() * 0.7)  # past the imports, most of the time
    process.send_signal(signal.SIGKILL)
    process.communicate()


async def test_a_stopped_backup_leaves_the_older_one(tmp_path, monkeypatch):
    filled = await asyncio.to_thread(places.filled, tmp_path / "data")
    async with filled.opened() as (db, store):
        maintenance = Maintenance(filled.data, db, store, serving=False)
        assert await maintenance.backup(tmp_path / "b", print) == 0
        older = manifest.read(tmp_path / "b")
        await more(filled)
        reached = asyncio.Event()

        async def never(*_: object) -> list[bytes]:
            reached.set()
            await asyncio.Event().wait()
            return []

        monkeypatch.setattr(store.packs, "read", never)
        work = asyncio.create_task(maintenance.backup(tmp_path / "b", print))
        await reached.wait()
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        monkeypatch.undo()
        assert manifest.read(tmp_path / "b") == older
        assert await maintenance.backup(tmp_path / "b", print) == 0


async def test_a_backup_beside_a_relay_syncs_and_hashes_nothing_on_the_event_loop(tmp_path, monkeypatch):
    """A pack may have a GiB, the database more."""
    filled = await asyncio.to_thread(places.filled, tmp_path / "data")
    synced, hashed = set(), set()

    def noted(where, real):
        def call(*values):
            where.add(threading.get_ident())
            return real(*values)

        return call

    monkeypatch.setattr(os, "fsync", noted(synced, os.fsync))
    monkeypatch.setattr(files, "digest_of", noted(hashed, files.digest_of))
    async with filled.opened() as (db, store):
        assert await Maintenance(filled.data, db, store, serving=True).backup(tmp_path / "b", print) == 0
    assert synced
    assert hashed
    assert threading.get_ident() not in synced | hashed


async def test_a_backup_waits_for_the_collector(tmp_path):
    """Two processes of one database; with SQLite two works of one process."""
    filled = await asyncio.to_thread(places.filled, tmp_path / "data")
    said: list[str] = []
    async with filled.opened() as (one, store), filled.opened() as (other, _):
        first = Maintenance(filled.data, one, store, serving=True)
        second = Maintenance(filled.data, other, store, serving=True) if other.shared else first
        async with first._hold_lock(said.append):
            work = asyncio.create_task(second.backup(tmp_path / "b", said.append))
            if other.shared:
                while not said:
                    await asyncio.sleep(0)
                assert "waiting" in said[0]
            for _ in range(20):
                await asyncio.sleep(0)
            assert not work.done()
            assert not (tmp_path / "b").exists()
        assert await work == 0


def test_a_pack_that_is_adopted_is_private_and_whole(tmp_path):
    async def run() -> None:
        data = os.urandom(12 * MIB)
        (tmp_path / "source").write_bytes(data)
        for packs in (PackFiles(tmp_path / "objects"), await buckets.packs()):
            await packs.adopt("name", tmp_path / "source")
            assert await packs.read("name", [(0, 6), (len(data) - 9, 9)]) == [data[:6], data[-9:]]
            assert [(one.name, one.size) async for one in packs.list_packs()] == [("name", len(data))]
            await packs.close()

    asyncio.run(run())
    assert stat.S_IMODE((tmp_path / "objects" / "name.pack").stat().st_mode) == 0o600
