"""Webhooks: the owner's, told in signed messages what they asked for, at least once, and nothing hidden."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from localstore.core.model import limits
from relay.db.schema import tables
from relay.domain.upkeep import upkeep
from relay.domain.webhook import delivery as deliveries
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok
from tests.relay.receiver import Received, Receiver, receiving

DAY = 24 * 3600_000
ALL = ["push", "release", "proposal", "review", "comment", "issue", "run"]


@pytest.fixture(scope="module")
def target() -> Iterator[Receiver]:
    with receiving() as server:
        yield server


@pytest.fixture
def repo(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    who = account()
    return create(client(who), who, "hooked", visibility="public")


def hook(repo: Repository, url: str, *events: str, **more: Any) -> dict[str, Any]:
    body = {"url": url, "events": list(events) or ALL, **more}
    made: dict[str, Any] = ok(repo.http.post(f"{repo.url}/webhooks", json=body))
    return made


def settled(repo: Repository, made: dict[str, Any], state: str, count: int = 1) -> list[dict[str, Any]]:
    """Its deliveries in this state, once they are so many."""
    until = time.monotonic() + PATIENCE
    while True:
        found: list[dict[str, Any]] = repo.get(f"/webhooks/{made['id']}/deliveries", state=state)["items"]
        if len(found) >= count:
            return found
        assert time.monotonic() < until, repo.get(f"/webhooks/{made['id']}/deliveries")
        time.sleep(0.02)


def attempted(repo: Repository, made: dict[str, Any]) -> dict[str, Any]:
    """Its one delivery, once it was tried."""
    until = time.monotonic() + PATIENCE
    while True:
        (found,) = repo.get(f"/webhooks/{made['id']}/deliveries")["items"]
        if found["attempts"]:
            return dict(found)
        assert time.monotonic() < until
        time.sleep(0.02)


def verified(secret: str, got: Received) -> bool:
    key = base64.b64decode(secret.removeprefix("whsec_")) if "whsec_" in secret else secret.encode()
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.body
    right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return got.headers["webhook-signature"] == f"v1,{right}"


def test_a_webhook_is_made_shown_changed_and_deleted(repo: Repository, target: Receiver) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}", "release", "push")
    assert made["secret"].startswith("whsec_")
    assert made["events"] == ["push", "release"]
    assert (made["active"], made["disabled"], made["failing_since"]) == (True, None, None)
    url = f"/webhooks/{made['id']}"
    assert "secret" not in {k for k, v in repo.get(url).items() if v}
    assert [one["id"] for one in repo.get("/webhooks")["items"]] == [made["id"]]
    (ping,) = target.wait(1, f"/ok/{repo.id}")
    assert verified(made["secret"], ping)
    assert (ping.headers["webhook-event"], ping.message["type"]) == ("ping", "ping")
    assert ping.message["data"]["repo"] == {"id": repo.id, "full_name": repo.body["full_name"]}
    off = ok(repo.http.patch(repo.url + url, json={"active": False, "events": ["run"]}))
    assert (off["active"], off["disabled"], off["events"]) == (False, "owner", ["run"])
    answer = repo.http.post(f"{repo.url}{url}/ping")
    assert (answer.status_code, answer.json()["code"]) == (409, "webhook_inactive")
    assert f"svc repo webhook edit {made['id']} --active" in answer.json()["detail"]
    assert ok(repo.http.patch(repo.url + url, json={"active": True}))["disabled"] is None
    assert repo.http.delete(repo.url + url).status_code == 204
    assert repo.get("/webhooks")["items"] == []
    audit = [one["action"] for one in repo.get("/audit")["items"]]
    assert audit[:5] == [f"webhook.{verb}" for verb in ("delete", "edit", "edit", "ping", "create")]


def test_each_kind_is_told_to_those_who_asked_for_it(repo: Repository, target: Receiver) -> None:
    path = f"/ok/{repo.id}"
    made = hook(repo, target.url + path, secret="s3cret-" * 4)
    other = hook(repo, f"{target.url}/ok/other{repo.id}", "release")
    first, second = repo.seal({"a.txt": b"1\n"}, {"a.txt": b"2\n"}, messages=["one", "two"])
    repo.branch("topic", first)
    topic = repo.seal({"b.txt": b"1\n"}, branch="topic", messages=["on topic"])[0]
    http, url = repo.http, repo.url
    ok(http.post(f"{url}/releases", json={"version": "v1", "seal_id": second, "notes": "first"}))
    ok(http.post(f"{url}/issues", json={"title": "Bug", "body": "text"}))
    comment = ok(http.post(f"{url}/issues/1/comments", json={"body": "I see"}))
    ok(http.patch(f"{url}/issues/1", json={"state": "closed"}))
    ok(http.post(f"{url}/proposals", json={"head": "topic", "base": "main", "title": "Two"}))
    ok(http.post(f"{url}/proposals/2/reviews", json={"verdict": "comment", "body": "hm"}))
    run = ok(http.post(f"{url}/runs", json={"name": "ci", "seal_id": topic}))
    target.wait(11, path)  # a message says how things stand when it is made
    assert http.delete(f"{url}/releases/v1").status_code == 204
    assert http.delete(f"{url}/issues/1/comments/{comment['id']}").status_code == 204
    got = target.wait(13, path)
    assert all(verified(made["secret"], one) for one in got)
    by_id = {int(one.headers["webhook-id"]): one for one in got}
    assert len(by_id) == len(got)
    told = [by_id[n].message for n in sorted(by_id)][1:]  # without the ping
    assert [(one["type"], one["data"]["action"]) for one in told] == [
        ("push", "pushed"),
        ("push", "created"),
        ("push", "pushed"),
        ("release", "created"),
        ("issue", "created"),
        ("comment", "created"),
        ("issue", "closed"),
        ("proposal", "created"),
        ("review", "submitted"),
        ("run", "created"),
        ("release", "deleted"),
        ("comment", "deleted"),
    ]
    assert {one["data"]["actor"]["handle"] for one in told} == {repo.owner.handle}
    data = [one["data"] for one in told]
    pushed = {"ref": "main", "ref_type": "branch", "before": None, "after": second, "more": False}
    assert data[0].items() >= pushed.items()
    assert data[0]["seals"] == [{"id": first, "message": "one"}, {"id": second, "message": "two"}]
    assert (data[1]["ref"], data[1]["after"], data[1]["seals"]) == ("topic", first, [])
    assert (data[2]["before"], data[2]["seals"]) == (first, [{"id": topic, "message": "on topic"}])
    assert data[3]["release"]["notes"] == "first"
    assert (data[4]["issue"]["number"], data[4]["issue"]["title"]) == (1, "Bug")
    assert (data[5]["comment"]["body"], data[5]["subject"]["number"]) == ("I see", 1)
    assert data[7]["proposal"].items() >= {"head": "topic", "base": "main", "head_seal": topic}.items()
    assert (data[8]["review"]["body"], data[8]["proposal"]["number"]) == ("hm", 2)
    assert data[9]["run"]["id"] == run["id"]
    assert data[10]["release"] == {"version": "v1", "seal_id": second}
    assert data[11]["comment"] == {"id": comment["id"]}
    released = target.wait(3, f"/ok/other{repo.id}")
    assert sorted(one.message["type"] for one in released) == ["ping", "release", "release"]
    assert all(verified(other["secret"], one) for one in released)


def test_a_push_of_more_names_the_newest(repo: Repository, target: Receiver) -> None:
    hook(repo, f"{target.url}/ok/{repo.id}", "push")
    seals = repo.seal(*({"a.txt": b"%d\n" % n} for n in range(limits.WEBHOOK_SEALS + 3)))
    (push,) = [one for one in target.wait(2, f"/ok/{repo.id}") if one.message["type"] == "push"]
    assert [one["id"] for one in push.message["data"]["seals"]] == seals[3:]
    assert push.message["data"]["more"] is True


def test_nothing_hidden_and_nothing_of_the_owner_alone_is_told(repo: Repository, target: Receiver) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}")
    repo.seal({"vault/plan.txt": b"planned\n", "a.txt": b"1\n"})
    ok(repo.http.put(f"{repo.url}/paths", json={"path": "vault", "visibility": "private"}))
    repo.seal({"vault/plan.txt": b"replanned\n"})
    ok(repo.http.post(f"{repo.url}/reports", json={"title": "Leak", "body": "confidential"}))
    ok(repo.http.put(f"{repo.url}/checks/ci"))
    ok(repo.http.post(f"{repo.url}/issues", json={"title": "last"}))
    got = target.wait(4, f"/ok/{repo.id}")
    assert sorted(one.message["type"] for one in got) == ["issue", "ping", "push", "push"]
    sent = b"".join(one.body for one in got)
    for word in (b"vault", b"plan", b"confidential", b"Leak"):
        assert word not in sent
    assert len(repo.get(f"/webhooks/{made['id']}/deliveries")["items"]) == 4


def test_a_delivery_shows_what_was_sent_and_how_it_was_answered(repo: Repository, target: Receiver) -> None:
    made = hook(repo, f"{target.url}/500/{repo.id}", "issue")
    (got,) = target.wait(1, f"/500/{repo.id}")
    waiting = attempted(repo, made)
    assert (waiting["status"], waiting["reason"]) == (500, "it answered 500")
    assert waiting["next_at"] > waiting["attempted_at"]
    assert repo.get(f"/webhooks/{made['id']}")["failing_since"]
    whole = repo.get(f"/webhooks/{made['id']}/deliveries/{waiting['id']}")
    assert whole["request_body"].encode() == got.body
    assert whole["request_headers"]["webhook-id"] == got.headers["webhook-id"] == whole["event_id"]
    assert whole["request_headers"]["webhook-signature"] == got.headers["webhook-signature"]
    assert whole["answer_body"] == "no \ufffd\x1b[2J thanks"
    assert whole["answer_headers"]["content-length"] == "15"


def test_a_redelivery_keeps_the_id(repo: Repository, target: Receiver) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}", "issue")
    (first,) = settled(repo, made, "delivered")
    again = ok(repo.http.post(f"{repo.url}/webhooks/{made['id']}/deliveries/{first['id']}/redeliver"))
    assert again["redelivery"] is True
    assert (again["event_id"], again["id"] != first["id"]) == (first["event_id"], True)
    one, two = target.wait(2, f"/ok/{repo.id}")
    assert one.body == two.body
    assert one.headers["webhook-id"] == two.headers["webhook-id"]
    assert verified(made["secret"], two)


def test_an_attempt_that_failed_is_made_again(
    repo: Repository, target: Receiver, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight times in all; each attempt has the id of the event. Then the delivery has failed."""
    monkeypatch.setattr(deliveries, "PAUSES", (0,) * len(deliveries.PAUSES))
    made = hook(repo, f"{target.url}/503/{repo.id}", "issue")
    (failed,) = settled(repo, made, "failed")
    assert (failed["attempts"], failed["status"], failed["next_at"]) == (deliveries.ATTEMPTS, 503, None)
    got = target.wait(deliveries.ATTEMPTS, f"/503/{repo.id}")
    assert {one.headers["webhook-id"] for one in got} == {failed["event_id"]}
    # A job that is carried out once more, because its worker died before it said so, does nothing.
    relay.run(deliveries.attempt(relay.node, failed["id"], 3))
    assert len(target.of(f"/503/{repo.id}")) == deliveries.ATTEMPTS


def test_what_is_gone_or_fails_for_days_is_switched_off_and_its_owner_told(
    repo: Repository, target: Receiver, relay: Relay
) -> None:
    gone = hook(repo, f"{target.url}/410/{repo.id}", "issue")
    settled(repo, gone, "failed")
    found = repo.get(f"/webhooks/{gone['id']}")
    assert (found["active"], found["disabled"]) == (False, "gone")
    failing = hook(repo, f"{target.url}/500/{repo.id}", "issue", "run")
    attempted(repo, failing)
    _set(relay, "webhook", failing["id"], failing_since=1)
    ok(repo.http.post(f"{repo.url}/issues", json={"title": "x"}))
    target.wait(2, f"/500/{repo.id}")
    until = time.monotonic() + PATIENCE
    while repo.get(f"/webhooks/{failing['id']}")["active"] and time.monotonic() < until:
        time.sleep(0.02)
    assert repo.get(f"/webhooks/{failing['id']}")["disabled"] == "failing"
    told = [one for one in repo.get("/audit")["items"] if one["action"] == "webhook.disable"]
    assert [(one["data"]["id"], one["data"]["reason"], one["actor"]) for one in told] == [
        (failing["id"], "failing", None),
        (gone["id"], "gone", None),
    ]
    while not (rows := ok(repo.http.get("/api/v1/inbox"))["items"]) and time.monotonic() < until:
        time.sleep(0.02)
    (row,) = rows
    assert (row["reason"], row["subject"]["kind"]) == ("webhook_disabled", "repository")
    again = ok(repo.http.patch(f"{repo.url}/webhooks/{failing['id']}", json={"active": True}))
    assert (again["active"], again["failing_since"]) == (True, None)


def test_a_new_owner_is_not_told_on(
    repo: Repository, target: Receiver, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}", "issue")
    target.wait(1, f"/ok/{repo.id}")
    heir = account()
    offer = ok(repo.http.post(f"{repo.url}/transfers", json={"to": heir.handle}))
    ok(client(heir).post(f"/api/v1/transfers/{offer['id']}/accept"))
    ok(client(heir).post(f"{repo.url}/issues", json={"title": "mine now"}))
    theirs = Repository(client(heir), heir, repo.body)
    assert theirs.get(f"/webhooks/{made['id']}")["disabled"] == "transferred"
    other = hook(theirs, f"{target.url}/ok/heir{repo.id}", "issue")
    ok(client(heir).post(f"{repo.url}/issues", json={"title": "second"}))
    target.wait(2, f"/ok/heir{repo.id}")
    assert len(target.of(f"/ok/{repo.id}")) == 1
    assert other["id"] != made["id"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"url": "ftp://hooks.example/"}, "/url"),
        ({"url": "javascript:alert(1)"}, "/url"),
        ({"url": "https://user:pass@hooks.example/"}, "/url"),
        ({"url": "https://hooks.example/#x"}, "/url"),
        ({"url": "https://hooks.example/\r\nx: y"}, "/url"),
        ({"url": "https://hooks.example/ x"}, "/url"),
        ({"url": "https://h\u00f6oks.example/"}, "/url"),
        ({"url": "https://hooks.example:99999/"}, "/url"),
        ({"url": "https://hooks.example:0/"}, "/url"),
        ({"url": "https://[::1/"}, "/url"),
        ({"url": "https://" + "a" * 2000 + ".example/"}, "/url"),
        ({"url": "http://169.254.169.254/latest/meta-data/"}, "/url"),
        ({"url": "http://10.0.0.1/"}, "/url"),
        ({"url": "http://167772161/"}, "/url"),
        ({"url": "http://0x0a000001/"}, "/url"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "/url"),
        ({"url": "http://[::ffff:127.0.0.1]/"}, "/url"),
        ({"url": "http://[64:ff9b::7f00:1]/"}, "/url"),
        ({"url": "http://[2002:7f00:1::]/"}, "/url"),
        ({"url": "http://[fe80::1]/"}, "/url"),
        ({"url": "http://100.64.0.1/"}, "/url"),
        ({"url": "http://224.0.0.1/"}, "/url"),
        ({"url": "http://0.0.0.0/"}, "/url"),
        ({"events": []}, "/events"),
        ({"events": ["push", "everything"]}, "/events/1"),
        ({"secret": "short"}, "/secret"),
        ({"secret": "whsec_not base64 at all"}, "/secret"),
        ({"secret": "whsec_" + "*" * 20}, "/secret"),
    ],
)
def test_what_no_webhook_can_be_is_refused(repo: Repository, body: dict[str, Any], pointer: str) -> None:
    sent = {"url": "https://hooks.example/", "events": ["push"], **body}
    answer = repo.http.post(f"{repo.url}/webhooks", json=sent)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert repo.get("/webhooks")["items"] == []


@pytest.mark.usefixtures("rate_limits")
def test_a_repository_and_an_account_have_so_many(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WEBHOOKS", 2)
    monkeypatch.setattr(limits, "WEBHOOKS_A_DAY", 3)
    sent = {"url": "https://hooks.example/", "events": ["push"], "active": False}
    other = create(repo.http, repo.owner, "second")
    answers = [repo.http.post(f"{repo.url}/webhooks", json=sent).status_code for _ in range(3)]
    answers += [repo.http.post(f"{other.url}/webhooks", json=sent).status_code for _ in range(2)]
    assert answers == [201, 201, 409, 201, 429]


@pytest.mark.usefixtures("rate_limits")
def test_pings_are_so_many_a_minute(
    repo: Repository, target: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WEBHOOK_ASKED", 2)
    made = hook(repo, f"{target.url}/ok/{repo.id}", "issue")
    url = f"{repo.url}/webhooks/{made['id']}"
    ok(repo.http.post(f"{url}/ping"))
    assert repo.http.post(f"{url}/ping").status_code == 429
    (first, *_) = repo.get(f"/webhooks/{made['id']}/deliveries")["items"]
    assert repo.http.post(f"{url}/deliveries/{first['id']}/redeliver").status_code == 429


def test_what_hangs_drips_or_never_ends_holds_up_nobody(repo: Repository, target: Receiver) -> None:
    """The small version of scripts/relays/webhooks.py."""
    path = f"/ok/{repo.id}"
    for how in ("hang", "drip", "giant", "head"):
        hook(repo, f"{target.url}/{how}/{repo.id}", "issue")
    hook(repo, "http://127.0.0.1:9/dead", "issue")
    for n in range(10):
        with_name = target.url.replace("127.0.0.1", "localhost")
        hook(repo, f"{with_name}{path}/{n}", "issue")
    target.wait(10, path)
    began = time.monotonic()
    ok(repo.http.post(f"{repo.url}/issues", json={"title": "x"}))
    target.wait(20, path)
    assert time.monotonic() - began < limits.OUTBOUND_SECONDS  # well before anything above has ended


def test_deliveries_are_kept_for_a_week(repo: Repository, target: Receiver, relay: Relay) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}", "issue")
    (old,) = settled(repo, made, "delivered")
    ok(repo.http.post(f"{repo.url}/issues", json={"title": "x"}))
    settled(repo, made, "delivered", 2)
    before = upkeep.now_ms() - 8 * DAY
    _set(relay, "webhook_delivery", old["id"], created_at=before)
    _set(relay, "webhook_message", int(old["event_id"]), "event_id", created_at=before)
    relay.run(upkeep.delete_expired(relay.node))
    (left,) = repo.get(f"/webhooks/{made['id']}/deliveries")["items"]
    assert left["event"] == "issue"
    assert not relay.run(_there(relay, int(old["event_id"])))


async def _there(relay: Relay, event: int) -> bool:
    message = tables["webhook_message"]
    async with relay.node.db.read() as tx:
        return await tx.one(message.select().where(message.c.event_id == event)) is not None


def _set(relay: Relay, table: str, key: object, column: str = "id", **values: Any) -> None:
    async def act() -> None:
        one = tables[table]
        async with relay.node.db.write() as tx:
            await tx.run(update(one).where(one.c[column] == key).values(values))

    relay.run(act())


def test_hidden_and_missing_are_the_same_and_only_the_owner_asks(
    repo: Repository, target: Receiver, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    made = hook(repo, f"{target.url}/ok/{repo.id}", "issue")
    stranger = client(account())
    for path in ("", f"/{made['id']}", f"/{made['id']}/deliveries"):
        assert stranger.get(f"{repo.url}/webhooks{path}").status_code == 403
    other = create(repo.http, repo.owner, "second")
    for path in (made["id"], "0" * 32):
        assert repo.http.get(f"{other.url}/webhooks/{path}").status_code == 404
        assert repo.http.get(f"{other.url}/webhooks/{path}/deliveries").status_code == 404
    forged = repo.http.get(f"{repo.url}/webhooks", params={"cursor": "WyJhIiwxXQ"})
    assert forged.status_code == 422
