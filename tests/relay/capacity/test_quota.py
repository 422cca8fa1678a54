"""Quotas: what accounts keep is counted with its effect, refused before it is written, and given back."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from localstore.core.encoding import digest
from relay.db.schema import tables
from relay.db.storage import usage
from relay.domain.storage.collect import collect
from relay.domain.upkeep import upkeep
from relay.run import cli
from tests.relay.auth.people import Browser, Device
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, create
from tests.relay.http.test_pack_http import pack_of, signed

BYTES, OBJECTS, REPOSITORIES, ACCOUNTS = 300_000, 40, 4, 3


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {
        "TR_RATE_LIMITS": "off",
        "RUST_LOG": "off",
        "TR_QUOTA_BYTES": str(BYTES),
        "TR_QUOTA_OBJECTS": str(OBJECTS),
        "TR_QUOTA_REPOSITORIES": str(REPOSITORIES),
        "TR_QUOTA_ACCOUNTS": str(ACCOUNTS),
    }


@pytest.fixture
def mira(account):
    return account()


@pytest.fixture
def repo(client, mira) -> Repository:
    return create(client(mira), mira, "first")


def send(repo: Repository, *datas: bytes) -> httpx.Response:
    pack = b"".join(pack_of(*datas).parts())
    return repo.http.post(f"{repo.url}/packs", **signed(pack))


def used(relay: Relay, account: Any) -> dict[str, int]:
    """What is counted; without the zeros."""

    async def read() -> dict[str, int]:
        async with relay.node.db.read() as tx:
            row = usage.to_row(await tx.one(usage.ONE, of_account=account.id))
        told = {name: getattr(row, name) for name in row.__struct_fields__ if name != "account_id"}
        return {name: value for name, value in told.items() if value}

    return relay.run(read())


def stored(relay: Relay) -> int:
    async def size() -> int:
        return sum([info.size async for info in relay.node.objects.packs.list_packs()])

    return relay.run(size())


def test_bytes_over_the_quota_are_refused_before_they_are_written(relay, client, mira, repo):
    data = os.urandom(BYTES - 1000)
    assert send(repo, data).status_code == 201
    assert send(repo, data).status_code == 201  # the same bytes count once
    assert used(relay, mira) == {"bytes": len(data), "objects": 1, "repositories": 1}
    before = stored(relay)
    refused = send(repo, os.urandom(1001))
    assert (refused.status_code, refused.headers["content-type"]) == (507, "application/problem+json")
    told = refused.json()
    assert told["code"] == "quota_exceeded"
    assert (told["what"], told["used"], told["limit"]) == ("bytes", BYTES + 1, BYTES)
    assert "relay quota" in told["detail"]
    payload = os.urandom(1001)
    put = repo.http.put(f"{repo.url}/payloads/{digest(payload).hex()}", content=payload)
    assert put.status_code == 507
    assert stored(relay) == before
    assert send(repo, os.urandom(1000)).status_code == 201


def test_objects_and_repositories_have_quotas(client, mira, repo):
    assert send(repo, *(os.urandom(9) for _ in range(OBJECTS))).status_code == 201
    assert send(repo, os.urandom(9)).json()["what"] == "objects"
    for number in range(REPOSITORIES - 1):
        create(client(mira), mira, f"r{number}")
    refused = client(mira).post("/api/v1/repos", json={"name": "one-more"})
    assert (refused.status_code, refused.json()["what"]) == (507, "repositories")
    assert client(mira).get(f"/api/v1/repos?owner={mira.handle}&name=one-more").json()["items"] == []
    assert client(mira).delete(repo.url).is_success
    assert client(mira).post("/api/v1/repos", json={"name": "one-more"}).status_code == 201


def test_shared_bytes_count_for_each_repository(relay, client, mira, repo, account):
    other = create(client(mira), mira, "second")
    stranger = account()
    theirs = create(client(stranger), stranger, "theirs")
    data = os.urandom(BYTES // 2 + 1)
    assert send(theirs, data).status_code == 201
    assert send(repo, data).status_code == 201
    assert send(other, data).status_code == 507
    assert used(relay, stranger)["bytes"] == used(relay, mira)["bytes"] == len(data)


def test_deleting_gives_back_once_and_purging_for_good(relay, client, mira, repo):
    data = os.urandom(BYTES - 10)
    assert send(repo, data).status_code == 201
    second = create(client(mira), mira, "second")
    assert send(second, os.urandom(100)).status_code == 507
    assert client(mira).delete(repo.url).is_success
    assert used(relay, mira) == {
        "repositories": 1,
        "deleted_bytes": len(data),
        "deleted_objects": 1,
        "deleted_repositories": 1,
    }
    assert send(second, os.urandom(BYTES)).status_code == 201
    assert client(mira).delete(second.url).is_success
    third = create(client(mira), mira, "third")
    refused = send(third, os.urandom(100))  # what was deleted lies here for 30 days
    assert (refused.status_code, refused.json()["limit"]) == (507, 2 * BYTES)
    assert client(mira).post(f"{second.url}/restore").is_success
    assert used(relay, mira)["bytes"] == BYTES
    assert client(mira).delete(second.url).is_success

    async def purge() -> int:
        async with relay.node.db.write() as tx:
            await tx.run(update(tables["repo"]).where(tables["repo"].c.id == second.id).values(purge_at=1))
        return await upkeep.purge_deleted(relay.node)

    assert relay.run(purge()) == 1
    assert used(relay, mira)["deleted_bytes"] == len(data)
    assert send(third, os.urandom(100)).status_code == 201


def test_the_collector_gives_back_what_it_takes(relay, mira, repo):
    assert send(repo, os.urandom(5000), os.urandom(100)).status_code == 201
    assert used(relay, mira)["objects"] == 2
    relay.run(collect(relay.node.db, relay.node.objects, lambda _: None, grace=-60_000))
    assert used(relay, mira) == {"repositories": 1}


def test_uploads_at_once_do_not_pass_the_quota_together(relay, client, mira, repo):
    repos = [repo, *(create(client(mira), mira, f"r{n}") for n in range(REPOSITORIES - 1))]
    size = BYTES * 2 // 5
    with ThreadPoolExecutor(len(repos)) as threads:
        found = list(threads.map(lambda one: send(one, os.urandom(size)).status_code, repos))
    assert sorted(found) == [201, 201, 507, 507]
    assert used(relay, mira)["bytes"] == 2 * size


def test_seals_count_what_they_write(relay, mira, repo):
    repo.seal({"a.txt": b"one\n", "d/b.txt": b"two\n"})
    counted = used(relay, mira)
    assert counted["objects"] == 4  # two files, two directories
    send(repo, os.urandom(BYTES - counted["bytes"]))
    again = repo.http.get(f"{repo.url}/refs/branch/main")
    assert again.is_success


def test_an_address_makes_so_many_accounts_in_a_day(relay, relay_variables):
    for number in range(ACCOUNTS):
        assert Device(relay.url).sign_in(f"device{number}").status_code == 201
    refused = Device(relay.url).sign_in("one-more")
    assert (refused.status_code, refused.json()["what"]) == (507, "accounts")
    form = {"handle": "one-more", "password": "correct horse battery"}
    assert Browser(relay.url).post("/auth/sign-up", data=form).status_code == 507
    assert Browser(relay.url).post("/auth/guest-login").is_success

    async def next_day() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(tables["address_usage"]).values(expires_at=1))

    relay.run(next_day())
    assert Device(relay.url).sign_in("one-more").status_code == 201


def test_the_operator_sees_and_sets_quotas(relay, mira, repo, capsys, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", relay.node.config.database_url)
    words = ["quota", mira.handle, "--data", str(relay.folder)]
    assert send(repo, os.urandom(BYTES + 1)).status_code == 507
    assert cli.main([*words, "--bytes", "1M", "--repositories", "2"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    told = dict(zip(head.split("\t"), line.split("\t"), strict=False))
    assert told["ACCOUNT"] == mira.handle
    assert line.split("\t")[1:3] == ["0", str(2**20)]
    assert send(repo, os.urandom(BYTES + 1)).status_code == 201
    assert cli.main([*words, "--bytes", "default"]) == 0
    assert send(repo, os.urandom(10)).status_code == 507
    assert cli.main(["quota", "--data", str(relay.folder)]) == 0
    assert mira.handle in capsys.readouterr().out
    assert cli.main(["quota", "--data", str(relay.folder), "--bytes", "5"]) == 2
    assert cli.main(["quota", "nobody-here", "--data", str(relay.folder)]) == 1
    assert "no account nobody-here" in capsys.readouterr().err
    with pytest.raises(SystemExit) as wrong:
        cli.main([*words, "--bytes", "much"])
    assert wrong.value.code == 2
