"""The collector keeps the chunks of large files, and the audit misses one that is gone."""

from __future__ import annotations

from sqlalchemy import delete

from relay.db.schema import repo_object
from relay.service import verification
from relay.service.collect import collect
from tests.relay.chunked_files import large, send
from tests.relay.conftest import Relay
from tests.relay.histories import create
from tests.relay.routes.test_chunked import seal_file

FILE = large(7)
LATER = -60_000  # grace: everything seen until a minute from now is old enough


async def findings(relay: Relay) -> list[str]:
    return [one async for one in verification.audit(relay.node.db, relay.node.objects)]


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
        [finding] = relay.run(findings(relay))
        assert FILE.digest in finding
        assert "chunks are missing" in finding
