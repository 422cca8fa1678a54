"""Live updates: every rule of the lane protocol's list, against the real database and object store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import bindparam, func, select, update

from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.errors import Forbidden, Invalid, NotFound, SignatureInvalid, TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import signing_bytes
from localstore.core.model import limits
from localstore.core.model.live import (
    BootstrapRequest,
    ClockReused,
    LanesRequest,
    ProofContextRequest,
)
from localstore.core.model.live import LaneName as LaneAsked
from localstore.core.validation import check_members
from relay.db.schema import tables
from relay.domain.live import checkpoint, live
from relay.domain.live import lane as lanes
from tests.relay.domain.live.live_world import Device, World, world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def count(w: World, table: object) -> int:
    async with w.node.db.read() as tx:
        return int(await tx.value(select(func.count()).select_from(table)))  # type: ignore[arg-type]


# --- bootstrap


async def test_bootstrap_gives_rows_and_a_replica_and_later_only_what_changed(w: World) -> None:
    a = await w.device()
    first, _ = await a.text("d/x.txt", b"one\n")
    b = await w.device()
    whole = await b.bootstrap()
    assert [(row.path, row.kind, row.gen, row.other) for row in whole.rows] == [("d/x.txt", "text", 1, 1)]
    assert unb64u(whole.tree_key, 32)
    assert 0 < a.replica < 1 << 52 and a.replica != b.replica
    await a.one(a.delete("d/x.txt", first, first))
    later = await b.bootstrap(since=whole.seq)
    assert [(row.path, row.kind) for row in later.rows] == [("d/x.txt", "gone")]
    assert (await b.bootstrap(since=later.seq)).rows == []
    assert (await b.bootstrap()).rows == []


async def test_a_store_that_went_back_in_time_gets_clock_reused(w: World) -> None:
    a = await w.device()
    await a.text("x", b"")
    a.n = 0
    with pytest.raises(ClockReused):
        await a.bootstrap()


async def test_bootstrap_refuses_foreign_replicas_keys_and_branches(w: World) -> None:
    a, b = await w.device(), await w.device()
    b.replica = a.replica
    with pytest.raises(Forbidden):
        await b.bootstrap()
    stranger = await w.account()
    with pytest.raises(Forbidden):
        await live.bootstrap(await w.view(stranger), "main", BootstrapRequest(device_key_id=a.key.id))
    with pytest.raises(NotFound):
        await live.bootstrap(a.view, "no-such", BootstrapRequest(device_key_id=a.key.id))
    with pytest.raises(Invalid):
        check_members(BootstrapRequest(device_key_id=a.key.id, since=1 << 60))


# --- rule 1: revoked, settled, stored answers


async def revoke(w: World, device: Device) -> None:
    statement = (
        update(tables["device_key"])
        .where(tables["device_key"].c.id == bindparam("key"))
        .values(revoked_at=bindparam("at"))
    )
    async with w.node.db.write() as tx:
        await tx.run(statement, key=device.key.id, at=1)


async def test_rule_1_a_revoked_device_is_refused_and_its_accepted_edits_stand(w: World) -> None:
    a, b = await w.device(), await w.device()
    await a.text("x", b"kept")
    late = await a.create("y", b"late")
    await revoke(w, a)
    with pytest.raises(Forbidden):
        await a.send(late)
    assert [row.path for row in (await b.bootstrap()).rows] == ["x"]


async def test_rule_1_a_settled_number_is_answered_settled(w: World) -> None:
    a = await w.device()
    old = await a.create("x", b"1")
    await a.send(old)
    blob = await w.put(b"2")
    await a.send(a.make("create_text", "y", blake3=blob, size=1, settled=1))
    assert (await a.one(old)).result == "settled"
    assert await count(w, tables["update_answer"]) == 1


async def test_rule_1_the_same_update_again_gets_the_stored_answer(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"hello")
    edit = a.edit("x", lane, gen, b"hello world")
    first = await a.one(edit)
    again = await a.one(edit)
    assert first == again and first.result == "ok"
    assert (await a.send(edit, edit)) == [first, first]
    _, there = await a.fetch("x", gen)
    assert there.text() == b"hello world"


async def test_rule_1_refusals_are_stored_too(w: World) -> None:
    a, b = await w.device(), await w.device()
    early = await b.blob("x", b"\0b", gen=7)
    gen, _ = await a.text("x", b"a")
    assert (await b.one(early)).result == "stale"
    await a.one(a.delete("x", gen, gen))
    assert (await b.one(early)).result == "stale"


# --- rule 2: edits


async def test_rule_2_an_edit_of_another_lane_is_stale(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"a")
    assert (await a.one(a.edit("x", lane, gen + 1, b"ab"))).result == "stale"
    assert (await a.one(a.edit("nothing", Lane.genesis(a.branch_id, 1, 0, b""), 1, b"z"))).result == "stale"


async def test_rule_2_gen_is_looked_at_before_epoch(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"a")
    wrong = Lane.genesis(a.branch_id, gen, 0, b"a")
    assert (await a.one(a.edit("x", wrong, gen + 1, b"ab", epoch=9))).result == "stale"
    assert (await a.one(a.edit("x", lane, gen, b"abc", epoch=9))).result == "epoch"


async def test_rule_2_edits_of_two_replicas_merge_by_characters(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, mine = await a.text("x", b"one two three")
    theirs = Lane.genesis(b.branch_id, gen, 0, b"one two three")
    first = await a.one(a.edit("x", mine, gen, b"ONE two three"))
    second = await b.one(b.edit("x", theirs, gen, b"one two THREE"))
    assert (first.result, second.result) == ("ok", "ok")
    _, there = await a.fetch("x", gen)
    assert there.text() == b"ONE two THREE"
    assert second.digest == there.digest().hex()
    assert second.state_vector == b64u(there.state_vector())


async def test_rule_2_an_edit_made_from_a_file_is_refused_once_others_changed_the_text(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, lane = await a.text("x", b"timeout = 30\n")
    mine = Lane.genesis(b.branch_id, gen, 0, b"timeout = 30\n")
    first = await a.one(a.edit("x", lane, gen, b"timeout = 60\n", base=gen, typed=False))
    assert first.result == "ok"
    late = b.edit("x", mine, gen, b"timeout = 60\n", base=gen, typed=False)
    refused = await b.one(late)
    assert (refused.result, refused.code) == ("refused", "lane_moved")
    assert "svc pull --merge" in refused.detail
    assert await b.one(late) == refused, "as it was answered, so it stays"
    assert (await b.fetch("x", gen))[1].text() == b"timeout = 60\n"


async def test_rule_2_an_edit_that_saw_the_last_change_of_others_is_taken_whatever_is_its_own(
    w: World,
) -> None:
    a, b = await w.device(), await w.device()
    gen, lane = await a.text("x", b"one\n")
    for text in (b"one\ntwo\n", b"one\ntwo\nthree\n"):
        assert (await a.one(a.edit("x", lane, gen, text, base=gen, typed=False))).result == "ok"
    state, mine = await b.fetch("x", gen)
    answer = await b.one(b.edit("x", mine, gen, b"ONE\ntwo\nthree\n", base=state.ver, typed=False))
    assert (answer.result, answer.digest) == ("ok", digest(b"ONE\ntwo\nthree\n").hex())


async def test_rule_2_typed_edits_land_beside_those_of_others(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, lane = await a.text("x", b"one\ntwo\n")
    mine = Lane.genesis(b.branch_id, gen, 0, b"one\ntwo\n")
    await a.one(a.edit("x", lane, gen, b"one!\ntwo\n", base=gen, typed=True))
    assert (await b.one(b.edit("x", mine, gen, b"one\ntwo!\n", base=gen, typed=True))).result == "ok"
    assert (await b.fetch("x", gen))[1].text() == b"one!\ntwo!\n"


async def test_rule_2_operations_of_another_lane_or_replica_are_refused_and_change_nothing(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, lane = await a.text("x", b"hello")
    other, foreign = await a.text("y", b"hello")
    (good,) = [lane.edit(a.replica, b"hello!")]
    bad = foreign.edit(a.replica, b"hello?")
    assert good and bad
    ops = [b64u(good), b64u(bad)]
    refused = await a.one(a.make("edit_text", "x", gen, epoch=0, ops=ops, typed=True))
    assert (refused.result, refused.code) == ("refused", "update_invalid")
    stolen = await b.one(b.make("edit_text", "x", gen, epoch=0, ops=[b64u(good)], typed=True))
    assert (stolen.result, stolen.code) == ("refused", "update_invalid")
    state, there = await a.fetch("x", gen)
    assert there.text() == b"hello" and state.state is None
    assert (await a.one(a.make("edit_text", "x", gen, epoch=0, ops=[b64u(good)], typed=True))).result == "ok"
    assert (await a.fetch("x", gen))[1].text() == b"hello!"
    assert other != gen


async def test_rule_2_several_edits_of_one_lane_in_one_batch(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    answers = await a.send(*[a.edit("x", lane, gen, b"1" * n) for n in range(2, 6)])
    assert [answer.result for answer in answers] == ["ok"] * 4
    w.node.lanes.forget(list(w.node.lanes._lanes))
    assert (await a.fetch("x", gen))[1].text() == b"11111"


async def test_rule_2_an_edit_of_a_deleted_file_is_stale_in_the_same_batch(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    answers = await a.send(a.delete("x", gen, gen), a.edit("x", lane, gen, b"12"))
    assert [answer.result for answer in answers] == ["ok", "stale"]


# --- rule 3: files


async def test_rule_3_the_same_bytes_are_accepted_with_the_row_that_is_there(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, _ = await a.text("x", b"same")
    answer = await b.one(await b.create("x", b"same"))
    assert (answer.result, answer.gen, answer.seq) == ("ok", gen, gen)
    assert (await b.bootstrap()).seq == gen


async def test_rule_3_a_set_or_delete_over_an_unseen_change_is_stale(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, lane = await a.text("x", b"1")
    edited = await a.one(a.edit("x", lane, gen, b"12"))
    assert (await b.one(b.delete("x", gen, gen))).result == "stale"
    assert (await b.one(await b.blob("x", b"\0", gen, gen))).result == "stale"
    assert (await b.one(await b.blob("x", b"\0", gen + 5, edited.seq))).result == "stale"
    assert (await b.one(b.delete("x", gen, edited.seq))).result == "ok"


async def test_rule_3_own_changes_do_not_make_an_update_stale(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    await a.send(a.edit("x", lane, gen, b"12"), a.edit("x", lane, gen, b"123"))
    assert (await a.one(a.delete("x", gen, 0))).result == "ok"


async def test_rule_3_other_is_the_last_change_by_any_other_replica(w: World) -> None:
    a, b = await w.device(), await w.device()
    gen, mine = await a.text("x", b"1")
    theirs = Lane.genesis(b.branch_id, gen, 0, b"1")
    await b.one(b.edit("x", theirs, gen, b"12"))
    await a.one(a.edit("x", mine, gen, b"01"))
    assert (await a.bootstrap()).rows[0].other == gen + 1
    assert (await b.bootstrap()).rows[0].other == gen + 2
    assert (await a.one(a.delete("x", gen, gen))).result == "stale"
    assert (await a.one(a.delete("x", gen, gen + 1))).result == "ok"


async def test_rule_3_a_file_and_a_directory_of_one_name_are_stale(w: World) -> None:
    a = await w.device()
    gen, _ = await a.text("a/b/c", b"1")
    answers = await a.send(
        await a.create("a/b", b"2"),
        await a.create("a", b"2"),
        await a.create("a/b/c/d", b"2"),
        await a.create("a/b!", b"2"),
        await a.create("a/b0", b"2"),
        await a.create("ab", b"2"),
    )
    assert [answer.result for answer in answers] == ["stale"] * 3 + ["ok"] * 3
    after = await a.send(
        a.delete("a/b/c", gen, gen), await a.create("a/b", b"2"), await a.create("a/b/x", b"")
    )
    assert [answer.result for answer in after] == ["ok", "ok", "stale"]


async def test_rule_3_deleting_what_is_gone_is_accepted(w: World) -> None:
    a = await w.device()
    assert (await a.one(a.delete("x", 3, 0))).result == "ok"


async def test_rule_3_a_kind_change_retires_the_lane(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    answer = await a.one(await a.blob("x", b"\0\0", gen, gen))
    assert answer.result == "ok" and answer.gen != gen
    assert (await a.one(a.edit("x", lane, gen, b"12"))).result == "stale"
    missing = await lanes.read(a.view, "main", LanesRequest(lanes=[LaneAsked(path="x", gen=gen)]))
    assert missing.missing == ["x"]


async def test_bytes_that_are_absent_wrong_or_not_text_are_refused(w: World) -> None:
    a = await w.device()
    raw = await w.put(b"\xff\xfe")
    cases = {
        "payload_missing": a.make("create_text", "a", blake3="0" * 64, size=1),
        "not_text": a.make("create_text", "b", blake3=raw, size=2),
        "digest_mismatch": a.make("set_blob", "c", blake3=raw, size=3),
        "path_invalid": a.make("set_blob", "../c", blake3=raw, size=2),
    }
    answers = await a.send(*cases.values())
    assert [answer.code for answer in answers] == list(cases)
    assert {answer.result for answer in answers} == {"refused"}
    assert (await a.bootstrap()).rows == []


async def test_bytes_of_another_repository_are_not_here(w: World) -> None:
    a = await w.device()
    alien = (await w.node.objects.put(None, b"secret")).hex()
    assert (await a.one(a.make("create_text", "x", blake3=alien, size=6))).code == "payload_missing"


@pytest.mark.parametrize(("kind", "result"), [("app", "too_large"), ("model", "payload_missing")])
async def test_the_cap_bites_where_a_file_enters_the_tree(tmp_path: Path, kind: str, result: str) -> None:
    async with world(tmp_path, kind) as w:
        a = await w.device()
        big = bytes(limits.BLOB_FILE + 1)
        answer = await a.one(await a.blob("x", big))
        assert answer.code == result
        assert (await a.bootstrap()).rows == []


async def test_a_large_file_enters_the_tree_by_its_own_digest(tmp_path: Path) -> None:
    async with world(tmp_path, "model") as w:
        a = await w.device()
        big = bytes(limits.BLOB_FILE + 1)
        blob = await w.put_large(big)
        wrong = a.make("set_blob", "x", blake3=blob, size=len(big) + 1)
        assert (await a.one(wrong)).code == "digest_mismatch"
        assert (await a.one(a.make("create_text", "x", blake3=blob, size=len(big)))).code == "payload_missing"
        assert (await a.one(a.make("set_blob", "x", blake3=blob, size=len(big)))).result == "ok"
        [row] = (await a.bootstrap()).rows
        assert (row.kind, row.digest, row.size) == ("chunked", blob, len(big))
        sealed = await a.seal()
        assert sealed.verified is None


# --- signatures


TAMPERED = [
    {"n": 2},
    {"settled": 0, "base": 1},
    {"path": "y"},
    {"kind": "set_blob"},
    {"gen": 4},
    {"base": 4},
    {"blake3": "1" * 64},
    {"size": 2},
]


@pytest.mark.parametrize("change", TAMPERED)
async def test_a_tampered_member_breaks_the_signature_and_nothing_takes_effect(
    w: World, change: dict[str, object]
) -> None:
    a = await w.device()
    good = await a.create("x", b"1")
    other = await a.create("z", b"1")
    with pytest.raises(SignatureInvalid):
        await a.send(other, msgspec.structs.replace(good, **change))
    assert (await a.bootstrap()).seq == 0


async def test_tampered_operations_break_the_signature(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"1")
    edit = a.edit("x", lane, gen, b"12")
    for change in ({"ops": [b64u(b"other")]}, {"epoch": 1}):
        with pytest.raises(SignatureInvalid):
            await a.send(msgspec.structs.replace(edit, **change))


async def test_updates_of_another_replica_branch_or_device_are_refused(w: World) -> None:
    a, b = await w.device(), await w.device()
    signed = await a.create("x", b"1")
    with pytest.raises(SignatureInvalid):
        await b.send(signed)
    a.replica = b.replica
    with pytest.raises(Forbidden):
        await a.send(await a.create("y", b"1"))


async def test_a_batch_has_a_limit_and_a_shape(w: World) -> None:
    a = await w.device()
    update = await a.create("x", b"1")
    with pytest.raises(TooLarge):
        await a.send(*[update] * (limits.UPDATES_PER_BATCH + 1))
    with pytest.raises(Invalid):
        await a.send(update, turn="a\nb")
    assert await a.send() == []


async def test_proof_context_echoes_what_the_device_computed(w: World) -> None:
    a = await w.device()
    update = await a.create("x", b"1")
    body = ProofContextRequest(device_key_id=a.key.id, replica=a.replica, update=update)
    echoed = await live.proof_context(a.view, "main", body)
    assert unb64u(echoed.bytes) == signing_bytes(w.repo_id, a.branch_id, a.replica, a.key.id, update)


# --- lanes in memory, checkpoints


async def test_a_lane_that_memory_forgot_is_built_from_its_log(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"0")
    for n in range(1, 6):
        w.node.lanes.forget(list(w.node.lanes._lanes))
        assert (await a.one(a.edit("x", lane, gen, b"0" + b"x" * n))).result == "ok"
    assert (await a.fetch("x", gen))[1].text() == b"0xxxxx"


async def test_a_batch_that_fails_late_leaves_no_trace_in_memory(w: World) -> None:
    a = await w.device()
    gen, lane = await a.text("x", b"0")
    edit = a.edit("x", lane, gen, b"01")
    announce = w.node.hub.announce

    async def broken(*_: object, **__: object) -> int:
        raise ConnectionError

    w.node.hub.announce = broken  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        await a.send(edit)
    w.node.hub.announce = announce  # type: ignore[method-assign]
    assert (await a.fetch("x", gen))[1].text() == b"0"
    assert (await a.one(edit)).result == "ok"
    assert (await a.fetch("x", gen))[1].text() == b"01"


async def test_a_changed_turn_makes_a_checkpoint_and_so_does_quiet(w: World) -> None:
    a = await w.device()
    made = []
    for path, turn in (("a", "t1"), ("b", "t1"), ("c", "t2"), ("d", None)):
        answer = await live.accept(a.view, "main", a.batch(await a.create(path, b""), turn=turn))
        made.append(answer.checkpoint)
    assert made == [True, False, True, False]
    assert not await checkpoint.if_idle(w.node, a.branch_id)
    old = update(tables["ref"]).values(updated_at=bindparam("at"))
    async with w.node.db.write() as tx:
        await tx.run(old, at=1)
    assert await checkpoint.if_idle(w.node, a.branch_id)
    assert not await checkpoint.if_idle(w.node, a.branch_id)
    assert await count(w, tables["checkpoint"]) == 1  # each replaced the one before it


# --- whose edits


async def test_bootstrap_names_whose_unsealed_edits_a_path_holds(w: World) -> None:
    a, b = await w.device(), await w.device(await w.account())
    await a.text("mine.txt", b"one\n")
    await b.text("theirs.txt", b"two\n")
    assert (await a.bootstrap()).live_by == {"theirs.txt": [b.view.me.account_id[:8]]}
    await a.seal()
    assert (await a.bootstrap()).live_by == {}
