"""What a transaction asks once more: who wrote the subject, whether the credential still holds, and whether
whoever began something long may finish it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from sqlalchemy import bindparam, delete, update

from localstore.core.encoding import digest
from localstore.core.errors import EditionLacks, Forbidden, NotFound, Unauthorized
from localstore.core.model.limits import MIB
from localstore.core.model.repo import RepoCreate
from localstore.core.model.rights import OPERATIONS
from localstore.core.storage import chunks
from relay.base.clock import now_ms
from relay.caller import Caller, View
from relay.db.schema import tables
from relay.domain.repository import repo as repositories
from relay.domain.storage import chunked
from relay.gate.gate import require_node_can
from tests.relay.chunked_files import Large
from tests.relay.domain.live.live_world import World, world

EDIT = OPERATIONS["comment.edit"]


async def reader(w: World) -> View:
    view = await w.view(await w.account("read"))
    view.operation = EDIT
    view.require_allowed()  # as the gate does
    return view


async def test_the_author_may_what_the_role_does_not_include(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        view = await reader(w)
        async with view.write():
            view.require_author(view.me.account_id)


async def test_somebody_else_may_not(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        view = await reader(w)
        with pytest.raises(Forbidden, match="role admin"):
            async with view.write():
                view.require_author(w.owner)


async def test_whoever_has_the_role_need_not_be_the_author(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        view = await w.view(await w.account("admin"))
        view.operation = EDIT
        view.require_allowed()
        async with view.write():
            view.require_author(w.owner)


async def test_a_service_that_does_not_ask_changes_nothing(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        view = await reader(w)
        repo = tables["repo"]
        changed = update(repo).where(repo.c.id == bindparam("of")).values(description="changed")
        with pytest.raises(TypeError, match=r"comment\.edit asked nobody"):
            async with view.write() as tx:
                await tx.run(changed, of=w.repo_id)
        assert (await w.view(w.owner)).repo.description == ""


@pytest.mark.parametrize("what", ["session", "device_key", "account"])
async def test_a_credential_that_was_taken_away_writes_no_more(tmp_path: Path, what: str) -> None:
    """The session revoked, the key it is bound to revoked, the account disabled."""
    async with world(tmp_path) as w:
        device = await w.device()
        view = device.view
        session, key, account = (tables[one] for one in ("session", "device_key", "account"))
        bound = update(session).where(session.c.id == view.me.session_id).values(device_key_id=device.key.id)
        took = {
            "session": update(session).where(session.c.id == view.me.session_id).values(revoked_at=now_ms()),
            "device_key": update(key).where(key.c.id == device.key.id).values(revoked_at=now_ms()),
            "account": update(account).where(account.c.id == w.owner).values(disabled_at=now_ms()),
        }[what]
        async with w.node.db.write() as tx:
            await tx.run(bound)
        caller = Caller(node=w.node, principal=view.me, address="127.0.0.1")
        for one in (view, caller):
            async with one.write():
                pass
        async with w.node.db.write() as tx:
            await tx.run(took)
        for one in (view, caller):  # about a repository, and about the account alone
            with pytest.raises(Unauthorized):
                async with one.write():
                    pass


@pytest.mark.parametrize("what", ["device_key", "account"])
async def test_nor_does_a_key_by_itself(tmp_path: Path, what: str) -> None:
    async with world(tmp_path) as w:
        device = await w.device()
        view = device.view
        view.principal = msgspec.structs.replace(view.me, via="self", session_id=device.key.id)
        key, account = tables["device_key"], tables["account"]
        took = {
            "device_key": update(key).where(key.c.id == device.key.id).values(revoked_at=now_ms()),
            "account": update(account).where(account.c.id == w.owner).values(disabled_at=now_ms()),
        }[what]
        async with view.write():
            pass
        async with w.node.db.write() as tx:
            await tx.run(took)
        with pytest.raises(Unauthorized):
            async with view.write():
                pass


@pytest.mark.parametrize("what", ["create", "restore"])
async def test_nor_makes_or_restores_a_repository(tmp_path: Path, what: str) -> None:
    async with world(tmp_path) as w:
        view = await w.view(w.owner)
        caller = Caller(node=w.node, principal=view.me, address="127.0.0.1")
        view.operation = OPERATIONS["repo.delete"]
        await repositories.delete(view)
        session = tables["session"]
        ended = update(session).where(session.c.id == view.me.session_id).values(revoked_at=bindparam("at"))
        async with w.node.db.write() as tx:
            await tx.run(ended, at=now_ms())

        async def act() -> object:
            if what == "restore":
                return await repositories.restore(caller, w.repo_id)
            return await repositories.create(caller, RepoCreate(name="second"))

        with pytest.raises(Unauthorized):
            await act()
        async with w.node.db.write() as tx:
            await tx.run(ended, at=None)
        assert await act()


async def test_a_large_file_that_was_being_read_is_not_taken_from_somebody_removed(tmp_path: Path) -> None:
    """Its chunks are read for as long as it takes, also when the request has ended."""
    async with world(tmp_path, "model") as w:
        member = await w.account()
        view = await w.view(member)
        view.operation = OPERATIONS["payload.put_manifest"]
        data = bytes(17 * MIB)
        rows = [(await w.node.objects.put(w.repo_id, one), len(one)) for one in Large(data).chunks]
        made = chunks.manifest(digest(data), rows)
        collaborator = tables["collaborator"]
        async with w.node.db.write() as tx:
            await tx.run(
                delete(collaborator).where(collaborator.c.account_id == bindparam("who")), who=member
            )
        with pytest.raises(NotFound):
            await chunked.verify_and_record(view, made, chunks.encode(made))
        async with w.node.db.read() as tx:
            assert not await chunked.any_held(tx, w.repo_id)
        await chunked.verify_and_record(await w.view(w.owner), made, chunks.encode(made))
        async with w.node.db.read() as tx:
            assert await chunked.any_held(tx, w.repo_id)


async def test_what_the_edition_lacks_is_refused(tmp_path: Path) -> None:
    async with world(tmp_path) as w:
        with pytest.raises(EditionLacks, match="managed"):
            require_node_can(OPERATIONS["billing.checkout"], w.node)
