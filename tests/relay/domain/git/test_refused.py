"""What git is not given, and what a hostile reader cannot do."""

from __future__ import annotations

import gzip
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from sqlalchemy import update

from localstore.core.model.limits import GIT_REQUEST
from relay.db.schema.repo import repo as repositories
from tests.relay.conftest import Account, Relay
from tests.relay.domain.git.conftest import Git
from tests.relay.histories import Repository, compared, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]
REFS, PACK, PUSH = "info/refs?service=git-upload-pack", "git-upload-pack", "git-receive-pack"
LS_REFS = b"0014command=ls-refs\n0001000bsymrefs0000"
V2 = {"Git-Protocol": "version=2"}


def public(account: Maker, client: Client) -> Repository:
    made = own(account, client, visibility="public")
    made.seal({"a": b"1", "secret/b": b"2"})
    return made


def set_state(relay: Relay, repository: Repository, **values: str) -> None:
    async def run() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(repositories).where(repositories.c.id == repository.id).values(values))

    relay.run(run())


def hide_path(relay: Relay, mine: Repository) -> None:
    ok(mine.http.put(f"{mine.url}/paths", json={"path": "secret", "visibility": "private"}))


def suspend(relay: Relay, mine: Repository) -> None:
    set_state(relay, mine, state="suspended")


def kill(relay: Relay, mine: Repository) -> None:
    set_state(relay, mine, state="killed")


def encrypt(relay: Relay, mine: Repository) -> None:
    set_state(relay, mine, **{"class": "private_e2ee"})


def delete(relay: Relay, mine: Repository) -> None:
    ok(mine.http.delete(mine.url))


def make_private(relay: Relay, mine: Repository) -> None:
    ok(mine.http.patch(mine.url, json={"visibility": "private"}))


@pytest.mark.parametrize("close", [hide_path, suspend, kill, encrypt, delete, make_private])
def test_the_next_request_finds_nothing(
    relay: Relay, git: Git, account: Maker, client: Client, close: Callable[[Relay, Repository], None]
) -> None:
    """As of a repository that never was: git is asked to sign in, in case."""
    mine = public(account, client)
    git.clone(mine, "work")
    close(relay, mine)
    refused = git.tried("fetch", at="work")
    assert (refused.returncode, "could not read Username" in refused.stderr) == (128, True)
    for name in (mine.body["full_name"], f"{mine.body['full_name']}.git"):
        for path in (REFS, "info/refs?service=git-receive-pack", "info/refs"):
            there, missing = (compared(client().get(f"/{one}/{path}")) for one in (name, "nobody/nothing"))
            assert (there[0], there) == (401, missing)
    for path in (PACK, PUSH):
        names = (mine.body["full_name"], "no/no")
        there, missing = (_posted(client(), f"/{name}/{path}") for name in names)
        assert (there[0], there) == (401, missing)


def _posted(http: httpx.Client, path: str) -> tuple[int, bytes, dict[str, str]]:
    """As `compared`, but for whether the body had arrived when the answer was sent."""
    status, content, headers = compared(http.post(path, content=LS_REFS))
    return status, content, {name: value for name, value in headers.items() if name != "connection"}


def test_pushing_is_refused_with_a_sentence(git: Git, account: Maker, client: Client) -> None:
    mine = public(account, client)
    git.clone(mine, "work")
    git("commit", "-q", "--allow-empty", "-m", "mine", at="work")
    refused = git.tried("push", at="work")
    assert refused.returncode == 128
    assert "remote: git reads from this server and cannot push to it; use svc push" in refused.stderr
    answer = client().post(f"/{mine.body['full_name']}.git/{PUSH}", content=b"0000")
    assert (answer.status_code, answer.headers["content-type"]) == (403, "text/plain; charset=utf-8")


def test_a_client_without_the_smart_protocol_is_told(account: Maker, client: Client) -> None:
    mine = public(account, client)
    assert client().get(f"/{mine.body['full_name']}.git/info/refs").status_code == 403


def test_bodies_may_be_gzip_here_and_nowhere_else(account: Maker, client: Client) -> None:
    mine = public(account, client)
    url = f"/{mine.body['full_name']}.git/{PACK}"
    http = client()
    packed = {**V2, "Content-Encoding": "gzip"}
    plain = http.post(url, content=LS_REFS, headers=V2)
    assert plain.status_code == 200
    assert http.post(url, content=gzip.compress(LS_REFS), headers=packed).content == plain.content
    for body in (
        b"no gzip",
        gzip.compress(LS_REFS)[:-3],
        gzip.compress(LS_REFS) + b"more",
        gzip.compress(LS_REFS) * 2,
        zlib.compress(LS_REFS),
        b"",
    ):
        assert http.post(url, content=body, headers=packed).status_code == 400, body
    for coding in ("br", "gzip, gzip", "deflate"):
        headers = {**V2, "Content-Encoding": coding}
        assert http.post(url, content=gzip.compress(LS_REFS), headers=headers).status_code == 415
    other = mine.http.post(
        "/api/v1/repos",
        content=gzip.compress(b"{}"),
        headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
    )
    assert other.status_code == 415


def test_a_small_body_that_unpacks_to_much_is_cut_off(account: Maker, client: Client) -> None:
    mine = public(account, client)
    url = f"/{mine.body['full_name']}.git/{PACK}"
    bomb = gzip.compress(bytes(GIT_REQUEST + 1))
    assert len(bomb) < 20_000
    answer = client().post(url, content=bomb, headers={**V2, "Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert client().post(url, content=bytes(GIT_REQUEST + 1), headers=V2).status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"0000",
        b"zzzz",
        b"ffff",
        b"0001",
        b"0014command=ls-refs\n",
        b"0011command=fetch0001000fno-progress0032want " + b"1" * 40 + b"\n0009done\n0000",
        b"0032want " + b"1" * 40 + b"\n00000009done\n",
        b"0014command=ls-refs\n0001" + b"0015ref-prefix ../../\n" * 1000 + b"0000",
        bytes(range(256)) * 50,
    ],
)
def test_no_body_breaks_it(relay: Relay, account: Maker, client: Client, body: bytes) -> None:
    mine = public(account, client)
    for headers in (V2, {}, {"Git-Protocol": "version=9:" + "x" * 900}):
        answer = client().post(f"/{mine.body['full_name']}.git/{PACK}", content=body, headers=headers)
        assert answer.status_code == 200
        assert mine.body["full_name"].encode() not in answer.content
        assert str(relay.folder).encode() not in answer.content
    assert relay.node.git_packs.count == relay.node.git_refs.count == 0


def test_names_cannot_lead_elsewhere(client: Client) -> None:
    for name in ("..%2f..", "%2e%2e/x", "a/..%00", "a/.git", "a/b%2f..%2fc.git", "a/-c", "-c/a.git"):
        assert client().get(f"/{name}/{REFS}").status_code in (404, 422, 400, 401)


class Road(ThreadingHTTPServer):
    """Passes requests on to the relay, and calls `act` before the `at`-th."""

    def __init__(self, url: str, at: int, act: Callable[[], None]) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.relay, self.at, self.act = httpx.Client(base_url=url, trust_env=False), at, act
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Passing(BaseHTTPRequestHandler):
    server: Road

    def do_GET(self) -> None:
        self._pass(None)

    def do_POST(self) -> None:
        self._pass(self.rfile.read(int(self.headers["content-length"])))

    def log_message(self, format: str, *arguments: object) -> None:
        return

    def _pass(self, body: bytes | None) -> None:
        road = self.server
        road.asked.append(self.path)
        if len(road.asked) == road.at:
            road.act()
        names = ("git-protocol", "content-type", "content-encoding", "accept")
        headers = {name: self.headers[name] for name in names if name in self.headers}
        answer = road.relay.request(self.command, self.path, content=body, headers=headers)
        self.send_response(answer.status_code)
        self.send_header("content-length", str(len(answer.content)))
        for name in ("content-type", "www-authenticate"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.end_headers()
        self.wfile.write(answer.content)


@pytest.mark.parametrize("at", [2, 3])
@pytest.mark.parametrize("close", [hide_path, suspend, kill, encrypt, delete, make_private])
def test_between_two_requests_of_one_fetch(
    relay: Relay,
    git: Git,
    account: Maker,
    client: Client,
    close: Callable[[Relay, Repository], None],
    at: int,
) -> None:
    """git asks for capabilities, then for refs, then for a pack: whichever comes after it is refused."""
    mine = public(account, client)
    git.clone(mine, "work")
    mine.seal({"more": b"3"})
    road = Road(relay.url, at, lambda: close(relay, mine))
    serving = threading.Thread(target=road.serve_forever, args=(0.05,))
    serving.start()
    try:
        refused = git.tried("fetch", f"{road.url}/{mine.body['full_name']}.git", at="work")
    finally:
        road.shutdown()
        serving.join()
        road.server_close()
        road.relay.close()
    assert refused.returncode == 128
    assert "could not read Username" in refused.stderr
    assert len(road.asked) == at
    assert not git.tried("rev-parse", "--verify", "-q", "FETCH_HEAD", at="work").stdout
