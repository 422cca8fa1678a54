"""gc, audit, backup, restore as an operator runs them: beside a relay, without one, killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localstore.core.errors import Invalid, Unavailable
from relay import admin, backup, migrations
from relay.cli import main
from relay.db.sqlite import SqliteDatabase
from relay.objects.store import ObjectStore
from relay.service.verification import audit
from tests.relay.histories import own
from tests.relay.service.live_world import opened, world

DELAYED = """
import sys, time
from relay import cli
from relay.objects import compact, packs
if sys.argv[1] == "gc":
    import relay.service.collect as collect
    collect.collect.__kwdefaults__.update(grace=-60_000)
sys.exit(cli.main(sys.argv[1:]))
"""


def relay_command(*words: object) -> subprocess.Popen[str]:
    """A `relay` of its own process; its collector has no grace time."""
    return subprocess.Popen(
        [sys.executable, "-c", DELAYED, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def findings(folder: Path) -> list[str]:
    async def run() -> list[str]:
        db = SqliteDatabase(folder / "relay.db")
        await db.open()
        store = ObjectStore(folder, db)
        try:
            return [one async for one in audit(db, store)]
        finally:
            await store.close()
            await db.close()

    return asyncio.run(run())


async def fill(folder: Path) -> None:
    """A migrated folder: a sealed history, a live edit and objects that nobody refers to, in many packs."""
    migrations.upgrade(f"sqlite:///{folder / 'relay.db'}")
    async with world(folder) as made:
        made.node.objects.packs._roll_bytes = 30_000
        device = await made.device()
        head = None
        for number in range(6):
            await device.send(await device.create(f"d/{number}.txt", os.urandom(6000).hex().encode()))
            head = (await device.seal(head)).id
            for _ in range(4):
                await made.node.objects.put(made.repo_id, os.urandom(9000))
        await device.send(await device.create("live.txt", b"live"))
    (folder / "signer.keys").write_text("1 00")
    (folder / "secrets").mkdir()
    (folder / "secrets" / "tr_enroll_challenge").write_text("secret")


@pytest.fixture
def filled(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    asyncio.run(fill(folder))
    return folder


def test_beside_a_running_relay(relay, account, client, tmp_path, capsys):
    own(account, client).seal({"a.txt": b"one\n", "b.bin": b"\0" * 70_000}, {"a.txt": b"two\n"})
    where = ["--data", str(relay.folder)]
    assert stat.S_IMODE((relay.folder / admin.SOCKET_NAME).stat().st_mode) == 0o600
    assert main(["audit", *where]) == 0
    assert main(["gc", "--dry-run", *where]) == 0
    assert main(["gc", *where]) == 0
    assert main(["backup", str(tmp_path / "backup"), *where]) == 0
    out = capsys.readouterr().out
    for said in ("as it should be", "are referred to", "secrets"):
        assert said in out
    assert main(["restore", str(tmp_path / "backup"), "--data", str(tmp_path / "new")]) == 0
    assert findings(tmp_path / "new") == []
    assert (tmp_path / "new" / "signer.keys").read_bytes() == (relay.folder / "signer.keys").read_bytes()
    for path in (tmp_path / "new").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_the_socket_answers_nonsense_in_one_line(relay):
    async def ask(raw: bytes) -> dict[str, str]:
        reader, writer = await asyncio.open_unix_connection(relay.folder / admin.SOCKET_NAME)
        writer.write(raw)
        answer = await reader.readline()
        writer.close()
        return json.loads(answer)

    for raw in (b"\n", b"{}\n", b'{"do":"rm"}\n', b'{"do":"gc","dry_run":"x"}\n', b"\xff\n"):
        assert "cannot be read" in asyncio.run(ask(raw))["error"]
    refused = asyncio.run(ask(b'{"do":"backup","folder":"%s"}\n' % os.fsencode(relay.folder)))
    assert "something else" in refused["error"]


def test_without_a_relay(filled, tmp_path, capsys):
    where = ["--data", str(filled)]
    assert main(["audit", *where]) == 0
    assert main(["backup", str(tmp_path / "b"), *where]) == 0
    first = backup.read_manifest(tmp_path / "b")
    assert main(["backup", str(tmp_path / "b"), *where]) == 0
    second = backup.read_manifest(tmp_path / "b")
    packs = [{file.path for file in one.files if file.to.startswith("objects/")} for one in (first, second)]
    assert packs[0] == packs[1] != set()
    assert f" {second.files[0].size} of them new" in capsys.readouterr().out
    assert not (tmp_path / "b" / first.id).exists()
    assert main(["audit", "--data", str(tmp_path / "nothing")]) == 1
    asyncio.run(more(filled, 0))
    max((filled / "objects").iterdir()).unlink()
    assert main(["audit", *where]) == 1
    assert main(["backup", str(tmp_path / "b"), *where]) == 1
    assert backup.read_manifest(tmp_path / "b") == second


def test_a_restore_takes_nothing_damaged_and_nothing_outside(filled, tmp_path):
    backup.make(backup.Source(filled, filled / "relay.db"), tmp_path / "b", print)
    with pytest.raises(Invalid):
        backup.restore(tmp_path / "b", filled, print)
    with pytest.raises(Invalid):
        backup.make(backup.Source(filled, filled / "relay.db"), filled, print)
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    outside = {**manifest, "files": [{**manifest["files"][0], "to": "../x"}]}
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(outside))
    with pytest.raises(Invalid):
        backup.restore(tmp_path / "b", tmp_path / "new", print)
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(manifest))
    pack = next((tmp_path / "b" / "objects").iterdir())
    damaged = bytearray(pack.read_bytes())
    damaged[0] ^= 1
    pack.write_bytes(damaged)
    with pytest.raises(Invalid, match="damaged"):
        backup.restore(tmp_path / "b", tmp_path / "new", print)
    assert not (tmp_path / "new").exists()


def test_killed_in_the_middle_of_backup_restore_and_gc(filled, tmp_path):
    """At any moment: the backup folder holds a whole backup, the new folder is whole or absent, and the
    collector has lost nothing."""
    chance = random.Random(5)
    saved = tmp_path / "b"
    backup.make(backup.Source(filled, filled / "relay.db"), saved, print)
    for number in range(4):
        asyncio.run(more(filled, number))
        kill(relay_command("backup", saved, "--data", filled), chance)
        backup.restore(saved, tmp_path / f"r{number}", print)
        assert findings(tmp_path / f"r{number}") == []
        new = tmp_path / f"k{number}"
        kill(relay_command("restore", saved, "--data", new), chance)
        if new.exists():
            assert findings(new) == []
        for path in (filled / "objects").iterdir():
            os.utime(path, (1, 1))
        kill(relay_command("gc", "--data", filled), chance)
        assert findings(filled) == []
    backup.restore(saved, new if not new.exists() else tmp_path / "last", print)
    done = relay_command("gc", "--data", filled)
    assert done.communicate()[0].count("\n") == 3
    assert done.returncode == 0
    assert findings(filled) == []


async def more(folder: Path, number: int) -> None:
    async with opened(folder) as node:
        node.objects.packs._roll_bytes = 30_000
        (repo_id,) = sqlite3.connect(folder / "relay.db").execute("SELECT id FROM repo").fetchone()
        for _ in range(6):
            await node.objects.put(repo_id, os.urandom(20_000))


def kill(process: subprocess.Popen[str], chance: random.Random) -> None:
    time.sleep(0.35 + chance.random() * 0.5)  # past the imports, most of the time
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_a_stopped_backup_leaves_the_older_one(filled, tmp_path):
    source = backup.Source(filled, filled / "relay.db")
    older = backup.make(source, tmp_path / "b", print)
    asyncio.run(more(filled, 0))
    with pytest.raises(Unavailable):
        backup.make(source, tmp_path / "b", print, stopped=lambda: True)
    assert backup.read_manifest(tmp_path / "b") == older
