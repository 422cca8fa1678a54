"""A backup belongs to no back end: from every kind of node to every other, and nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import zstandard

from localstore.core.errors import Invalid
from relay.backup import tables
from relay.backup.files import Writing, reason
from relay.db.schema import metadata
from relay.events.hub import Hub
from tests.relay import places
from tests.relay.places import Place

KINDS = [(True, True), (False, False), (True, False), (False, True), (True, True)]  # postgres, s3


async def contents(place: Place) -> dict[str, Any]:
    """Every table; events without their ids, which a server of its own counts."""
    async with place.opened() as (db, _):
        found: dict[str, Any] = {name: await places.rows(db, name) for name in metadata.tables}
    found["event"] = [row[1:] for row in found["event"]]
    found["cursor"] = await behind(place)
    return found


async def behind(place: Place) -> dict[str, int]:
    """How many events each follower has had."""
    async with place.opened() as (db, _):
        ids = [row[0] for row in await places.rows(db, "event")]
        return {name: sum(one <= at for one in ids) for name, at in await places.rows(db, "cursor")}


async def go_on(place: Place) -> None:
    """Numbers that the database counts go on: a new pack, and an event after all others."""
    async with place.opened() as (db, store):
        repo_id = (await places.rows(db, "repo"))[0][0]
        name = await store.put(repo_id, place.data.name.encode())
        async with db.write(f"repo {repo_id}") as tx:
            event = await Hub(db).announce(tx, repo_id, "repo.resume", state="active")
        assert event == max(row[0] for row in await places.rows(db, "event"))
        assert await store.read(name, repo_id) == place.data.name.encode()


def test_from_every_kind_of_node_to_every_other(tmp_path: Path) -> None:
    here = places.filled(tmp_path / "first")
    for number, (postgres, s3) in enumerate(KINDS):
        before = asyncio.run(contents(here))
        assert here.relay("backup", tmp_path / f"b{number}") == 0
        here = places.empty(tmp_path / f"n{number}", postgres, s3)
        assert here.relay("restore", tmp_path / f"b{number}") == 0
        after = asyncio.run(contents(here))
        assert {name for name in before if before[name] != after[name]} == set()
        asyncio.run(go_on(here))
        assert here.findings() == []


def test_a_backup_and_its_node_are_never_inside_each_other(tmp_path: Path, capsys: Any) -> None:
    node = places.filled(tmp_path / "node")
    (tmp_path / "link").symlink_to(node.data)
    for target in (node.data, node.data / "backup", tmp_path / "link" / "backup"):
        assert node.relay("backup", target) == 1
        refusal = capsys.readouterr().err
        assert (
            f"{target} is inside the data folder {node.data}" in refusal
            and "name a folder elsewhere" in refusal
        )
        assert not list(node.data.rglob("*backup*"))
    assert node.relay("backup", tmp_path / "backup") == 0
    inside = places.empty(tmp_path / "backup" / "node", False, False)
    assert inside.relay("restore", tmp_path / "backup") == 1
    assert "is inside the backup" in capsys.readouterr().err
    assert not inside.data.exists()


def test_the_rows_of_a_file_are_these_bytes(tmp_path: Path) -> None:
    values = [None, True, 2**63 - 1, -(2**63), "ä\0", b"\xff"]
    with Writing(tmp_path / "database") as writing:
        out = tables._Items(writing)
        out.item(tables._encode(tables.Begin("t", list("abcdef"))))
        out.rows([values, (*values[:1], 0, *values[2:])], [1])
        out.flush()
        out.item(tables._encode(tables.Begin("empty", ["a"])))
        out.end()
    with (tmp_path / "database").open("rb") as file:
        assert zstandard.ZstdDecompressor().stream_reader(file).read().hex() == GOLDEN
    found = [(one.name, one.columns, list(one.rows)) for one in tables.read(tmp_path / "database")]
    assert found == [("t", list("abcdef"), [values, [None, False, *values[2:]]]), ("empty", ["a"], [])]


@pytest.mark.parametrize("cut", [1, 30, -1])
def test_a_file_that_was_cut_or_is_something_else_is_refused(tmp_path: Path, cut: int) -> None:
    place = tmp_path / "database"
    with Writing(place) as writing:
        out = tables._Items(writing)
        out.item(tables._encode(tables.Begin("t", ["a"])))
        out.rows([(n,) for n in range(5000)], [])
        out.flush()
        out.end()
    place.write_bytes(place.read_bytes()[:cut])
    with pytest.raises(Invalid):
        [list(one.rows) for one in tables.read(place)]
    place.write_bytes(b"something else")
    with pytest.raises(Invalid):
        list(tables.read(place))


GOLDEN = (
    "0000001e82a57461626c65a174a7636f6c756d6e7396a161a162a163a164a165a166"
    "0000003ddd0000000296c0c3cf7fffffffffffffffd38000000000000000a3c3a400c401ff"
    "96c0c2cf7fffffffffffffffd38000000000000000a3c3a400c401ff"
    "0000001882a57461626c65a5656d707479a7636f6c756d6e7391a16100000001c0"
)


def test_the_reason_of_the_disk_names_no_file_where_the_system_names_none(tmp_path: Path) -> None:
    with pytest.raises(OSError) as full, Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"x")
    assert reason(full.value) == "No space left on device"
    with pytest.raises(OSError) as missing:
        (tmp_path / "a").read_bytes()
    assert reason(missing.value) == f"No such file or directory ({tmp_path / 'a'})"
