"""git reads private repositories with a token as the password: 401 without it, 404 where it may not see."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from localstore.core.identity import bearer
from localstore.core.identity.capability import attenuate
from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.conftest import Git, files
from tests.relay.domain.git.test_refused import (
    LS_REFS,
    PACK,
    PUSH,
    REFS,
    V2,
    delete,
    encrypt,
    hide_path,
    kill,
    set_state,
    suspend,
)
from tests.relay.histories import Repository, compared, ok, own
from tests.relay.watching.statements import statements_of_requests

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]
Narrow = Callable[..., str]
ASKED = """#!/bin/sh
echo "$1" >> "$HOME/prompts"
case "$1" in Username*) echo anybody;; *) cat "$HOME/token";; esac
"""


@pytest.fixture
def mine(account: Maker, client: Client) -> Repository:
    """A private repository with two seals."""
    made = own(account, client)
    made.seal({"a": b"1", "secret/b": b"2"}, {"a": b"2"})
    return made


@pytest.fixture
def narrow(relay: Relay) -> Narrow:
    """The text of an account's token after `narrow(account, repository, ops=…, expires=…)`."""

    def make(who: Account, repository: Repository | None = None, **limits: Any) -> str:
        roots = relay.run(relay.node.signer.public_keys())
        repo = bytes.fromhex(repository.id) if repository is not None else None
        return bearer.to_text(attenuate(who.token, roots, **{"ops": ["read"], "repo": repo, **limits}))

    return make


def basic(password: str, name: str = "svc") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture
def asked(git: Git) -> Callable[[str], None]:
    """`asked(password)`: from now on git asks a program, which answers this."""
    script = git.folder / "askpass"
    script.write_text(ASKED)
    script.chmod(0o755)

    def use(password: str) -> None:
        (git.folder / "token").write_text(password)
        (git.folder / "prompts").write_text("")
        git("config", "--global", "core.askPass", str(script))

    return use


def prompts(git: Git) -> list[str]:
    return [line.partition(" for ")[0] for line in (git.folder / "prompts").read_text().splitlines()]


def member(
    relay: Relay, repository: Repository, account: Maker, client: Client, role: str = "read"
) -> Account:
    who = account()
    body = {"handle": who.handle, "role": role}
    invite = ok(repository.http.post(f"{repository.url}/invites", json=body))["id"]
    ok(client(who).post(f"/api/v1/invites/{invite}/accept"))
    return who


def test_one_prompt_and_the_token_as_the_password(
    git: Git, mine: Repository, narrow: Narrow, asked: Callable[[str], None]
) -> None:
    asked(narrow(mine.owner, mine, expires=datetime.now(UTC) + timedelta(hours=1)))
    folder = git.clone(mine, "work")
    assert files(folder) == {"a": b"2", "secret/b": b"2"}
    assert prompts(git) == ["Username", "Password"]
    mine.seal({"new": bytes(3000)})
    git("pull", "-q", at="work")
    assert (folder / "new").read_bytes() == bytes(3000)
    for version in ("0", "1"):
        git("-c", f"protocol.version={version}", "clone", "-q", git.address(mine), f"v{version}")
    git("clone", "-q", "--depth", "1", "--filter=blob:none", git.address(mine).removesuffix(".git"), "less")


def test_without_a_password_git_says_what_it_lacks(git: Git, mine: Repository) -> None:
    refused = git.tried("clone", git.address(mine), "work")
    assert refused.returncode == 128
    assert "could not read Username" in refused.stderr


def test_a_header_of_the_caller_s_own_works_as_in_scripts(git: Git, mine: Repository, narrow: Narrow) -> None:
    """And needs no signature where git posts."""
    token = narrow(mine.owner, mine)
    for value in (basic(token)["Authorization"], f"Bearer {token}"):
        to = value[:6]
        git("-c", f"http.extraHeader=Authorization: {value}", "clone", "-q", git.address(mine), to)
        assert files(git.folder / to)["a"] == b"2"


def test_what_is_public_needs_none_and_takes_one(
    account: Maker, client: Client, narrow: Narrow, mine: Repository
) -> None:
    open_one = own(account, client, visibility="public")
    open_one.seal({"a": b"1"})
    url = f"/{open_one.body['full_name']}.git/{REFS}"
    for headers in ({}, basic(narrow(mine.owner))):
        assert client().get(url, headers=headers).status_code == 200


@contextmanager
def work_of_requests(relay: Relay) -> Iterator[list[str]]:
    """Every statement that requests run in the block, with look-ups by key."""
    kind: Any = type(relay.node.db)
    lookup = kind.lookup

    with statements_of_requests(relay) as ran, pytest.MonkeyPatch.context() as patch:

        async def noted(self: Any, statement: Any, **values: Any) -> Any:
            ran.append(str(statement))
            return await lookup(self, statement, **values)

        patch.setattr(kind, "lookup", noted)
        yield ran


REQUESTS = [
    ("GET", REFS),
    ("GET", "info/refs?service=git-receive-pack"),
    ("GET", "info/refs"),
    ("POST", PACK),
    ("POST", PUSH),
]


def test_hidden_and_missing_are_one_answer_after_the_same_work(
    relay: Relay, account: Maker, client: Client, mine: Repository, narrow: Narrow
) -> None:
    """Byte for byte, without credentials, with those of a stranger, and with a token for something else."""
    other = own(account, client)
    stranger, guest = account(), account(kind="guest")
    owners = other.owner  # sees its own, and is asked for another's with a token for its own
    senders = {
        "nobody": ({}, 401),
        "stranger": (basic(narrow(stranger)), 404),
        "guest": (basic(narrow(guest)), 404),
        "narrowed": (basic(narrow(owners, other)), 404),
        "bearer": ({"Authorization": f"Bearer {narrow(stranger)}"}, 404),
    }
    for name, (headers, status) in senders.items():
        for method, path in REQUESTS:
            answers, works = [], []
            for place in (mine.body["full_name"], "nobody/nothing", f"{mine.body['full_name']}x"):
                with work_of_requests(relay) as ran:
                    content = LS_REFS if method == "POST" else None
                    url = f"/{place}.git/{path}"
                    told = client().request(method, url, headers={**V2, **headers}, content=content)
                shown = compared(told)
                shown[2].pop("connection", None)  # whether the body had arrived when the answer was sent
                answers.append(shown)
                works.append(list(ran))
            assert answers[0][0] == status, (name, path)
            assert answers[0] == answers[1] == answers[2], (name, path)
            assert works[0], (name, path)
            assert works[0] == works[1] == works[2], (name, path)
            challenge = answers[0][2].get("www-authenticate")
            assert challenge == ('Basic realm="svc", charset="UTF-8"' if status == 401 else None)


def test_a_token_reads_what_it_is_for_and_nothing_else(
    relay: Relay, account: Maker, client: Client, mine: Repository, narrow: Narrow
) -> None:
    other = own(account, client)
    second = Repository(mine.http, mine.owner, ok(mine.http.post("/api/v1/repos", json={"name": "second"})))
    url, there = f"/{mine.body['full_name']}.git", f"/{second.body['full_name']}.git"
    token = narrow(mine.owner, mine)
    assert client().get(f"{url}/{REFS}", headers=basic(token)).status_code == 200
    assert client().post(f"{url}/{PACK}", headers={**V2, **basic(token)}, content=LS_REFS).status_code == 200
    for place in (there, f"/{other.body['full_name']}.git"):
        assert client().get(f"{place}/{REFS}", headers=basic(token)).status_code == 404
    assert client().get(f"{there}/{REFS}", headers=basic(narrow(mine.owner))).status_code == 200
    unfit = narrow(mine.owner, mine, ops=["write"])
    assert client().get(f"{url}/{REFS}", headers=basic(unfit)).status_code == 404
    assert client().post(f"{url}/{PUSH}", headers=basic(token), content=b"0000").status_code == 403
    # Elsewhere it is a token like others, that reads this repository.
    bearing = {"Authorization": f"Bearer {token}"}
    assert client().get(mine.url, headers=bearing).status_code == 200
    assert client().get(second.url, headers=bearing).status_code == 403
    assert client().get("/api/v1/handles/me", headers=bearing).status_code == 403
    assert client().patch(mine.url, json={"description": "x"}, headers=bearing).status_code == 403
    assert client().get(mine.url, headers=basic(token)).status_code == 401, "passwords are for git alone"


def test_what_is_no_token_is_refused_and_git_shows_why(
    git: Git, mine: Repository, narrow: Narrow, client: Client, asked: Callable[[str], None]
) -> None:
    ended = narrow(mine.owner, mine, expires=datetime.now(UTC) - timedelta(seconds=1))
    url = f"/{mine.body['full_name']}.git/{REFS}"
    headers = [
        basic(ended),
        basic("hunter2"),
        basic(""),
        basic("x" * 9000),
        basic(narrow(mine.owner, mine)[:-4]),
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"no colon").decode()},
        {"Authorization": "Basic " + base64.b64encode(b"a:\xff").decode()},
        {"Authorization": "Negotiate x"},
        {"Authorization": ""},
    ]
    for one in headers:
        answers = [
            compared(client().get(url, headers=one)),
            compared(client().get(f"/no/no.git/{REFS}", headers=one)),
        ]
        assert answers[0][0] == 401, one
        assert answers[0] == answers[1], one
        assert answers[0][2]["www-authenticate"].startswith("Basic ")
    asked(ended)
    refused = git.tried("clone", git.address(mine), "work")
    assert refused.returncode == 128
    assert "remote: the session has expired; run: svc login" in refused.stderr
    assert "Authentication failed" in refused.stderr


def test_a_token_with_its_private_key_is_refused_by_name(
    relay: Relay, git: Git, mine: Repository, client: Client, asked: Callable[[str], None]
) -> None:
    whole = bearer.format_script_token(relay.url, mine.owner.token, mine.owner.key)
    asked(whole)
    refused = git.tried("clone", git.address(mine), "work")
    assert "remote: svct2_… is a script token with its private key" in refused.stderr
    assert whole.split(".")[2] not in refused.stderr
    url = f"/{mine.body['full_name']}.git/{REFS}"
    for headers in (
        basic(whole),
        basic("", whole),
        basic("svct_ab.cd"),
        {"Authorization": f"Bearer {whole}"},
    ):
        told = client().get(url, headers=headers)
        assert (told.status_code, "private key" in told.text) == (401, True)
    told = client().get(mine.url, headers={"Authorization": f"Bearer {whole}"})
    assert (told.status_code, "private key" in told.text) == (401, True)


def test_its_middle_part_alone_is_a_password(
    git: Git, mine: Repository, asked: Callable[[str], None]
) -> None:
    """As CI without svc has it."""
    whole = bearer.format_script_token("https://node.example", mine.owner.token, mine.owner.key)
    asked(whole.split(".")[1])
    assert files(git.clone(mine, "work"))["a"] == b"2"


@pytest.mark.parametrize("close", [suspend, kill, encrypt, delete])
def test_the_next_request_is_refused_to_its_owner_too(
    relay: Relay,
    git: Git,
    mine: Repository,
    narrow: Narrow,
    client: Client,
    asked: Callable[[str], None],
    close: Callable[[Relay, Repository], None],
) -> None:
    token = narrow(mine.owner, mine)
    asked(token)
    git.clone(mine, "work")
    close(relay, mine)
    refused = git.tried("fetch", at="work")
    assert refused.returncode == 128
    assert "remote: there is no such repository here" in refused.stderr
    for method, path in REQUESTS:
        told = [
            compared(client().request(method, f"/{place}.git/{path}", headers=basic(token)))
            for place in (mine.body["full_name"], "nobody/nothing")
        ]
        assert told[0][0] == 404
        assert told[0] == told[1]


def test_a_role_that_was_removed_ends_with_the_next_fetch(
    relay: Relay,
    git: Git,
    mine: Repository,
    account: Maker,
    client: Client,
    narrow: Narrow,
    asked: Callable[[str], None],
) -> None:
    bob = member(relay, mine, account, client)
    asked(narrow(bob, mine))
    git.clone(mine, "work")
    head = git.head("work")
    assert mine.http.delete(f"{mine.url}/collaborators/{bob.handle}").is_success
    mine.seal({"a": b"3"})
    refused = git.tried("fetch", at="work")
    assert refused.returncode == 128
    assert "remote: there is no such repository here" in refused.stderr
    body = b"0012command=fetch\n0001" + b"0032want %s\n" % head.encode() + b"0009done\n0000"
    url = f"/{mine.body['full_name']}.git/{PACK}"
    told = client().post(url, content=body, headers={**V2, **basic(narrow(bob, mine))})
    assert told.status_code == 404, "what was had once cannot be had again"


def test_a_session_that_was_ended_is_no_password(
    git: Git, mine: Repository, narrow: Narrow, client: Client, asked: Callable[[str], None]
) -> None:
    asked(narrow(mine.owner, mine))
    git.clone(mine, "work")
    assert mine.http.post("/auth/logout").is_success
    refused = git.tried("fetch", at="work")
    assert "remote: the session has ended" in refused.stderr
    assert refused.returncode == 128


def test_only_who_sees_all_of_it_gets_it(
    relay: Relay,
    git: Git,
    mine: Repository,
    account: Maker,
    client: Client,
    narrow: Narrow,
    asked: Callable[[str], None],
) -> None:
    """With a path that is private; the ids of commits name whole trees, so there is no clone of a part."""
    bob = member(relay, mine, account, client)
    hide_path(relay, mine)
    url = f"/{mine.body['full_name']}.git/{REFS}"
    answers = [
        compared(client().get(place, headers=basic(narrow(bob))))
        for place in (url, f"/nobody/nothing.git/{REFS}")
    ]
    assert answers[0][0] == 404
    assert answers[0] == answers[1]
    asked(narrow(mine.owner, mine))
    assert files(git.clone(mine, "whole")) == {"a": b"2", "secret/b": b"2"}
    set_state(relay, mine, **{"class": "published_public"})
    assert client().get(url).status_code == 401, "its owner may sign in"


def test_cookies_of_a_browser_count_for_nothing(relay: Relay, mine: Repository, client: Client) -> None:
    cookies = {
        "session": bearer.to_text(mine.owner.token),
        "__Host-session": bearer.to_text(mine.owner.token),
    }
    url = f"/{mine.body['full_name']}.git/{REFS}"
    assert client(cookies=cookies).get(url).status_code == 401


def test_a_token_is_no_part_of_the_log_or_the_answer(
    relay: Relay, mine: Repository, narrow: Narrow, client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    token = narrow(mine.owner, mine)
    url = f"/{mine.body['full_name']}.git/{REFS}"
    told = client().get(url, headers=basic(token))
    assert told.status_code == 200
    said = capfd.readouterr()
    assert token not in told.text + str(told.headers) + said.out + said.err


def test_the_keys_with_which_a_client_narrows_are_public(relay: Relay, client: Client) -> None:
    keys = relay.run(relay.node.signer.public_keys())
    told = ok(client().get("/api/v1/auth/token-keys"))["keys"]
    assert {
        int(number): len(base64.urlsafe_b64decode(key + "=")) for number, key in told.items()
    } == dict.fromkeys(keys, 32)


def test_a_private_cache_outlives_a_sweep_and_goes_with_its_repository(
    relay: Relay, git: Git, mine: Repository, narrow: Narrow, asked: Callable[[str], None]
) -> None:
    from relay.domain.git import serving
    from relay.domain.git.cache import Cache

    asked(narrow(mine.owner, mine))
    git.clone(mine, "work")
    cache = Cache(relay.folder, mine.id)
    relay.run(serving.sweep(relay.node))
    assert cache.exists()
    suspend(relay, mine)
    relay.run(serving.sweep(relay.node))
    assert not cache.exists()


def test_the_address_is_named_where_git_can_read(
    relay: Relay, mine: Repository, account: Maker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the answer for one repository, in lists and in what anybody may read."""
    from relay.base import git as git_here

    address = f"{relay.url}/{mine.body['full_name']}.git"
    bob = member(relay, mine, account, client)

    def named(who: Account) -> list[str | None]:
        http = client(who)
        owner, name = mine.body["full_name"].split("/")
        (listed,) = ok(http.get("/api/v1/repos", params={"owner": owner, "name": name}))["items"]
        return [ok(http.get(mine.url))["clone_url"], listed["clone_url"]]

    assert named(mine.owner) == named(bob) == [address, address]
    hide_path(relay, mine)
    assert (named(mine.owner), named(bob)) == ([address, address], [None, None])
    set_state(relay, mine, **{"class": "published_public"})
    set_state(relay, mine, **{"class": "private_e2ee"})
    assert named(mine.owner) == [None, None]
    set_state(relay, mine, **{"class": "published_public"})
    assert ok(client().get("/api/v1/client-config"))["git"] is True
    monkeypatch.setattr(git_here, "find_program", lambda: None)
    assert ok(client().get("/api/v1/client-config"))["git"] is False
    assert named(mine.owner) == [None, None]
