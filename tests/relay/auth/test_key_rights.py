"""A device key never outranks whoever registered it, and a token that only reads is a reader."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from localstore.core.identity.bearer import parse_script_token
from localstore.core.identity.capability import attenuate
from localstore.core.identity.device_grant import Purpose
from tests.relay.auth.people import Terminal
from tests.relay.auth.test_device_key import CHALLENGES, KEYS, register
from tests.relay.conftest import Account
from tests.relay.histories import Repository

ME, REPOS, PAIR = "/auth/userinfo", "/api/v1/repos", "/api/v1/auth/pairing-codes"


@pytest.fixture
def owner(browser, name):
    """Somebody in a browser, with a repository."""
    one = browser().sign_up(name())
    one.repo = one.post(REPOS, json={"name": "things"}).json()["id"]
    return one


@pytest.fixture
def script(relay, owner):
    """`script("write")`: a job with a token of the owner's."""

    def make(access: str) -> Terminal:
        made = owner.post("/api/v1/auth/tokens", json={"label": access, "access": access})
        _, raw, key = parse_script_token(made.json()["token"])
        return Terminal(relay.url, key, raw)

    return make


def wider(repo: str) -> list[tuple[str, str, dict[str, str] | None]]:
    return [
        ("PATCH", f"{REPOS}/{repo}", {"description": "mine"}),
        ("POST", REPOS, {"name": "more"}),
        ("GET", f"{REPOS}/{repo}", None),
        ("POST", PAIR, None),
        ("PUT", "/api/v1/handles/me", {"handle": "other"}),
        ("DELETE", f"{REPOS}/{repo}", None),
    ]


def test_a_key_that_a_write_token_registered_does_nothing_alone(owner, script, device):
    machine = device()
    registered = register(script("write"), machine)
    assert registered.status_code == 201
    alone = machine.client(None)
    for method, path, body in wider(owner.repo):
        assert alone.send(method, path, body).status_code == 403, (method, path)
    assert owner.get(f"{REPOS}/{owner.repo}").json()["description"] == ""


def test_nor_does_it_sign_in(owner, script, device):
    machine = device()
    register(script("write"), machine)
    handle = owner.get(ME).json()["handle"]
    refused = machine.sign_in(handle)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    code = owner.post(PAIR).json()["code"]
    assert machine.sign_in(handle, pair=code).status_code == 403
    assert device().sign_in(handle, pair=code).status_code == 201, "the code is still good"


def test_a_token_that_only_reads_registers_no_key(script, device):
    reader = script("read")
    assert reader.send("POST", CHALLENGES, device().start()).status_code == 403
    assert reader.send("GET", KEYS).status_code == 200


def test_a_challenge_of_another_session_is_not_answered_with_a_write_token(terminal, script, device):
    """The rights of the key are those of the session that answers, so that session must have asked."""
    one, machine = terminal(), device()
    challenge = one.send("POST", CHALLENGES, machine.start()).json()
    answer = machine.answer(Purpose.REGISTER, challenge["account"], challenge)
    assert script("write").send("POST", KEYS, answer).status_code == 410


def test_a_full_session_registers_a_full_key(terminal, device):
    machine = device()
    assert register(terminal(), machine).status_code == 201
    other = device()
    assert register(machine.client(None), other).status_code == 201, "and that one registers the next"
    assert other.client(None).send("POST", PAIR).status_code == 201


def test_a_narrowed_token_hands_nothing_on(relay, terminal, device):
    one, machine = terminal(), device()
    soon = datetime.now(UTC) + timedelta(minutes=5)
    roots = relay.run(relay.node.signer.public_keys())
    lent = Terminal(relay.url, one.key, attenuate(one.token, roots, expires=soon))
    assert lent.send("POST", PAIR).status_code == 403
    assert register(lent, machine).status_code == 201
    assert machine.client(None).send("POST", PAIR).status_code == 403


@pytest.mark.parametrize(("access", "role"), [("read", "read"), ("write", "write"), ("admin", "owner")])
def test_a_token_is_told_what_it_may(owner, script, access, role):
    job = script(access)
    for path in (f"{REPOS}/{owner.repo}", f"{REPOS}?owner=@me&name=things"):
        answer = job.send("GET", path).json()
        repo = answer["items"][0] if "items" in answer else answer
        assert repo["viewer"]["role"] == role, path


def test_a_token_that_only_reads_changes_nothing(owner, script):
    reader = script("read")
    root = f"{REPOS}/{owner.repo}"
    for method, path, body in (
        ("POST", REPOS, {"name": "more"}),
        ("PATCH", root, {"description": "x"}),
        ("DELETE", root, None),
        ("POST", f"{root}/refs", {"type": "branch", "name": "b", "head": "0" * 64}),
        ("POST", f"{root}/branches/main/live/bootstrap", {}),
        ("POST", f"{root}/branches/main/seal/prepare", {}),
        ("PUT", f"{root}/payloads/{'0' * 64}", {}),
    ):
        assert reader.send(method, path, body).status_code == 403, (method, path)
    assert reader.send("GET", root).status_code == 200


def test_a_seal_names_the_capability_it_was_made_under_and_nobody_seals_without(relay, owner, script, device):
    """The write token's job seals with its machine's key. A token that only reads does not, nor does that
    key alone, nor the job with a key that is not registered."""
    job, reader, machine = script("write"), script("read"), device()
    assert register(job, machine).status_code == 201
    me = owner.get(ME).json()["user_id"]
    account = Account(me, None, job.key, "", job.token)
    with relay.client(account) as http:
        thing = Repository(http, account, {"id": owner.repo})
        done = {"device_key_id": machine.key.id, **thing.prepare(machine.key)}
    url = f"{thing.url}/branches/main/seal"
    again = {"device_key_id": machine.key.id, "message": "m", "expected_head": None}
    for one in (reader, machine.client(None)):
        assert one.send("POST", f"{url}/finalize", done).status_code == 403
        assert one.send("POST", f"{url}/prepare", again).status_code == 403
    foreign = device().key.id
    assert job.send("POST", f"{url}/prepare", {**again, "device_key_id": foreign}).status_code == 403
    assert job.send("POST", f"{url}/finalize", {**done, "device_key_id": foreign}).status_code == 403
    assert owner.get(f"{thing.url}/refs/branch/main").json()["head"] is None
    made = job.send("POST", f"{url}/finalize", done).json()
    told = owner.get(f"{thing.url}/seals/{made['id']}").json()["provenance"]
    under = f"write/script/{job.send('GET', ME).json()['session_id']}"
    assert (told["who"]["id"], told["device_key_id"], told["capability"]) == (me, machine.key.id, under)
