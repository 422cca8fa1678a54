"""The collector keeps the chunks of large files that are named; the audit misses one that is gone."""

from __future__ import annotations

from sqlalchemy import delete, select, update

from relay.db.schema.repo import repo as repos
from relay.db.schema.storage import chunked_file, repo_object
from relay.domain.storage.collect import collect
from relay.domain.upkeep import verification
from relay.domain.upkeep.upkeep import purge_deleted
from relay.objects.store import STALE_TOUCH
from tests.relay.chunked_files import large, send
from tests.relay.conftest import Relay
from tests.relay.domain.storage.test_chunked import seal_file
from tests.relay.histories import create

FILE = large(7)
LATER = -60_000  # grace: everything seen until a minute from now is old enough


async def findings(relay: Relay) -> list[str]:
    return [one async for one in verification.audit(relay.node.db, relay.node.objects)]


async def findings_of(relay: Relay, repo_id: str) -> list[str]:
    return [one for one in await findings(relay) if repo_id in one]


def test_large_files_survive_the_collector_and_pass_the_audit(relay: Relay) -> None:
    owner = relay.account("keeper")
    with relay.client(owner) as http:
        repo = create(http, owner, "kept", kind="model")
        assert send(repo, FILE).status_code == 201
        seal = seal_file(repo, "weights.bin", FILE)
        said: list[str] = []
        relay.run(collect(relay.node.db, relay.node.objects, said.append, grace=LATER, quiet=60_000))
        assert said
        assert http.get(f"{repo.url}/raw/{seal}/weights.bin").content == FILE.data
        assert relay.run(findings(relay)) == []

        async def lose() -> None:
            async with relay.node.db.write() as tx:
                chunk = bytes.fromhex(FILE.manifest.chunks[0].blake3)
                await tx.run(delete(repo_object).where(repo_object.c.digest == chunk))

        relay.run(lose())
        finding, *counts = relay.run(findings(relay))
        assert len(counts) == 3 and all("are counted" in one for one in counts)
        assert FILE.digest in finding
        assert "chunks are missing" in finding


def test_large_files_that_nothing_names_go_with_their_chunks(relay: Relay) -> None:
    owner = relay.account("tidy")
    sealed, loose = large(8), large(9)
    with relay.client(owner) as http:
        repo = create(http, owner, "tidied", kind="model")
        for file in (sealed, loose):
            assert send(repo, file).status_code == 201
        seal = seal_file(repo, "weights.bin", sealed)
        files = select(chunked_file.c.digest).where(chunked_file.c.repo_id == repo.id)
        chunk = bytes.fromhex(loose.manifest.chunks[0].blake3)

        async def gc(grace: int) -> set[str]:
            await collect(relay.node.db, relay.node.objects, print, grace=grace, quiet=60_000)
            async with relay.node.db.read() as tx:
                return {bytes(row[0]).hex() for row in await tx.all(files)}

        assert relay.run(gc(STALE_TOUCH)) == {sealed.digest, loose.digest}
        assert relay.run(gc(LATER)) == {sealed.digest}
        assert relay.run(relay.node.objects.locate([chunk])) == {}
        assert http.get(f"{repo.url}/raw/{seal}/weights.bin").content == sealed.data
        assert relay.run(findings_of(relay, repo.id)) == []
        assert send(repo, loose).status_code == 201


def test_naming_a_large_file_keeps_it_another_day(relay: Relay) -> None:
    owner, file = relay.account("namer"), large(10)
    with relay.client(owner) as http:
        repo = create(http, owner, "named", kind="model")
        assert send(repo, file).status_code == 201
        row = chunked_file.c.digest == bytes.fromhex(file.digest)

        async def age() -> None:
            async with relay.node.db.write() as tx:
                await tx.run(update(chunked_file).where(row).values(last_seen=1))

        async def seen() -> int:
            async with relay.node.db.read() as tx:
                return int(await tx.value(select(chunked_file.c.last_seen).where(row)))

        for name in (lambda: seal_file(repo, "weights.bin", file), lambda: send(repo, file)):
            relay.run(age())
            name()
            assert relay.run(seen()) > 1


def test_a_repository_with_large_files_is_purged(relay: Relay) -> None:
    owner = relay.account("purger")
    with relay.client(owner) as http:
        repo = create(http, owner, "purged", kind="model")
        assert send(repo, large(11)).status_code == 201
        assert http.delete(repo.url).is_success

        async def due() -> int:
            async with relay.node.db.write() as tx:
                await tx.run(update(repos).where(repos.c.id == repo.id).values(purge_at=1))
            return await purge_deleted(relay.node)

        assert relay.run(due()) == 1
        assert http.get(repo.url).status_code == 404
        assert relay.run(due()) == 0
