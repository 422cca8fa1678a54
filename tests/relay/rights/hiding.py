"""A repository with private paths, everything in it that must not be told, and a crawl through all routes
that read a repository."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from blake3 import blake3
from sqlalchemy import insert, select

from localstore.core.encoding import b64u
from localstore.core.storage.pack import PackReader
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.http.routing import Route
from tests.depth import played
from tests.relay.conftest import Account, Relay
from tests.relay.histories import create, ok
from tests.relay.mutations import QUESTIONS

RULES = {
    "vault": "private",
    "secret": "private",
    "secret/except": "open",
    "mixed/hidden.txt": "private",
    "folded": "private",  # a file, though a rule speaks of what could be below it
    "folded/part": "public",
}
FEW = 4
Request = tuple[str, dict[str, Any], bytes | None]
"""Path with query, JSON body, raw body."""


def text(word: str, lines: int) -> bytes:
    return b"".join(f"{word} line {n} {secrets.token_hex(4)}\n".encode() for n in range(lines))


class Hidden:
    """A public repository of five seals; `vault`, most of `secret` and one file of `mixed` are private."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.owner = relay.account(f"h{secrets.token_hex(5)}")
        self.http = relay.client(self.owner)
        self.repo = create(self.http, self.owner, "partly", visibility="public")
        self.private = {
            "vault/plan.txt": text("planned", 300),
            "vault/deep/blob.bin": b"\0blobbed" + secrets.token_bytes(3001),
            "secret/draft.txt": text("drafted", 40),
            "mixed/hidden.txt": text("concealed", 77),
            "folded": text("folding", 51),
        }
        shown = self.shown = {
            "open/readme.txt": text("readme", 3),
            "open/gone.txt": text("going", 30),
            "mixed/seen.txt": text("seen", 5),
            "secret/except/shown.txt": text("excepted", 4),
        }
        self.draft = self.private["secret/draft.txt"]
        live = text("alive", 9)
        self.seals = [self.repo.push(self.owner.key, "vault/live.txt", live)["id"]]
        self.seals += self.repo.seal({**self.private, **shown})
        self.private["vault/live.txt"] = live
        # Out of sight into sight, into it, and within it.
        published = self.draft + b"published\n"
        self.seals += self.repo.seal({"secret/draft.txt": None, "open/published.txt": published})
        inside = shown["open/gone.txt"] + b"taken in\n"
        self.seals += self.repo.seal({"open/gone.txt": None, "vault/taken-in.txt": inside})
        changed = self.private["vault/plan.txt"] + b"replanned\n"
        self.seals += self.repo.seal({"vault/plan.txt": changed})
        self.private |= {"vault/taken-in.txt": inside, "vault/plan.txt ": changed}
        ok(self.http.post(f"{self.repo.url}/refs", json={"type": "tag", "name": "v1", "head": self.seals[1]}))
        release = f"{self.repo.url}/releases"
        ok(self.http.post(release, json={"version": "v1", "seal_id": self.seals[1], "notes": "The first"}))
        ok(self.http.post(f"{release}/v1/assets", params={"name": "a.bin"}, content=b"asset"))
        ok(self.http.post(f"{self.repo.url}/runs", json={"name": "ci", "seal_id": self.seals[1]}))
        self.repo.branch("topic", self.seals[-2])
        more = {"vault/plan.txt": b"planned line\n", "open/more.txt": b"1\n"}
        self.seals += self.repo.seal(more, branch="topic")
        sent = {"head": "topic", "base": "main", "title": "More"}
        ok(self.http.post(f"{self.repo.url}/proposals", json=sent))
        self.paths = [*map(str.strip, self.private), *shown, "open/published.txt"]
        self.paths += ["vault", "vault/deep", "secret", "secret/except", "mixed", "open"]
        self.digests = [blake3(data).digest() for data in (*self.private.values(), *shown.values())]
        self.told = self._told()
        self.install()
        thread = {"path": "vault/plan.txt", "start": 1, "end": 1, "seal_id": self.seals[-1]}
        thread["body"] = "whispered @nobody"
        self.thread = ok(self.http.post(f"{self.repo.url}/proposals/1/threads", json=thread))
        self.told["words of a thread"] = [b"whispered"]
        ids = [self.thread["id"], self.thread["comments"][0]["id"]]
        self.told["a thread, and its comment"] = [*(one.encode() for one in ids), b'"open":1']
        self.seals += self.repo.seal({"open/late.txt": b"late\n"})  # under the tree key that hiding began
        key = self.relay.run(self._tree_key())
        self.told["tree key since then"] = [b64u(key).encode(), key]

    def _told(self) -> dict[str, list[bytes]]:
        """What must not be told, by name: spellings, of which none may occur."""
        found: dict[str, list[bytes]] = {}
        for path, data in self.private.items():
            digest = blake3(data)
            name = path.strip().rpartition("/")[2].encode()
            found[f"name of {path}"] = [name]
            found[f"digest of {path}"] = [
                digest.hexdigest().encode(),
                digest.digest(),
                b64u(digest.digest()).encode(),
                base64.b64encode(digest.digest()),
            ]
            found[f"size of {path}"] = [f'"size":{len(data)},'.encode(), f'"size":{len(data)}}}'.encode()]
        found["bytes of the plan"] = [b"planned line"]
        found["bytes of the file beside"] = [b"concealed line"]
        found["bytes of the blob"] = [b"\0blobbed", base64.b64encode(b"\0blobbed.")[:8]]
        found["name of the folder"] = [b"vault"]
        found["where the published draft was"] = [b"secret/draft.txt"]
        key = self.relay.run(self._tree_key())
        (version,) = self.repo.get("/proposals/1/versions")["items"]
        found["change of the proposal"] = [version["change_id"].encode()]
        found["tree key"] = [b64u(key).encode(), key]
        tree = self.repo.get(f"/tree/{self.seals[1]}", path="")
        (vault,) = [one for one in tree["entries"] if one["path"] == "vault"]
        found["digest of the folder"] = [vault["blake3"].encode()]
        return found

    async def _tree_key(self) -> bytes:
        repo = tables["repo"]
        async with self.relay.node.db.read() as tx:
            return bytes(await tx.value(select(repo.c.tree_key).where(repo.c.id == self.repo.id)))

    def install(self) -> None:
        """The policy, set as its owner does."""
        for path, kind in RULES.items():
            ok(self.http.put(f"{self.repo.url}/paths", json={"path": path, "visibility": kind}))

    def grant(self, who: Account, role: str) -> None:
        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                await tx.run(
                    insert(tables["collaborator"]),
                    repo_id=self.repo.id,
                    account_id=who.id,
                    role=role,
                    created_at=now_ms(),
                )

        self.relay.run(act())

    # --- the crawl

    def requests(self, route: Route) -> list[Request]:
        """Every way to ask this route about all there is. KeyError for a route nobody has thought of."""
        asked = f"{route.method} {route.path.removeprefix('/api/v1/repos/{id}')}"
        if asked in QUESTIONS:
            return list(_get(QUESTIONS[asked]))
        return list(self._ways()[asked]())

    def _ways(self) -> dict[str, Callable[[], Iterator[Request]]]:
        seals, paths = self.seals, self.paths
        names = [*seals, "main", "v1", "topic", "pr:1"]
        hexes = [one.hex() for one in self.digests]
        packed = b"".join(self.digests)
        ats = ["", *(f"?at={one}" for one in seals)]
        both = list(itertools.product(seals, paths))
        return {
            "GET ": lambda: _get([""]),
            "GET /commits": lambda: _get(
                [
                    "/commits",
                    *(f"/commits?sha={seals[-1]}&path={path}" for path in paths),
                    *(f"/commits?sha={seals[-1]}&path={path}&follow=1" for path in paths),
                    *(f"/commits?prefix={one[:6]}" for one in seals),
                ]
            ),
            "GET /log": lambda: _get(["/log", "/log?unverified=1"]),
            "GET /seals/{seal_id}": lambda: _get(f"/seals/{one}" for one in seals),
            "GET /seals/{seal_id}/artifacts": lambda: _get(f"/seals/{one}/artifacts" for one in seals),
            "GET /seals/{seal_id}/checks": lambda: _get(f"/seals/{one}/checks" for one in seals),
            "GET /seals/{seal_id}/updates": lambda: _get(
                itertools.chain.from_iterable(
                    (f"/seals/{one}/updates", f"/seals/{one}/updates?by=path") for one in seals
                )
            ),
            "GET /tree/{sha}": lambda: _get(
                f"/tree/{one}?path={path}&recursive={way}"
                for one in seals
                for path in ["", *paths]
                for way in "01"
            ),
            "GET /tree/{sha}/proof": lambda: _get(f"/tree/{one}/proof" for one in seals),
            "GET /blob/{sha}/{path...}": lambda: _get(f"/blob/{one}/{path}" for one, path in both),
            "GET /raw/{sha}/{path...}": lambda: _get(f"/raw/{one}/{path}" for one, path in both),
            "GET /seals/{seal_id}/blame/{path...}": lambda: _get(
                f"/seals/{one}/blame/{path}" for one, path in both
            ),
            "GET /archive/{sha}.tar.gz": lambda: _get(f"/archive/{one}.tar.gz" for one in seals),
            "GET /history-pack": lambda: _get(
                ["/history-pack", *(f"/history-pack?from={one}&skip={n}" for one in seals for n in (0, 1))]
            ),
            "GET /compare": lambda: _get(
                [
                    *(f"/compare?head={one}" for one in names),
                    *(
                        f"/compare?base={a}&head={b}&direct={way}"
                        for a, b in itertools.permutations(names, 2)
                        for way in "01"
                    ),
                ]
            ),
            "GET /refs": lambda: _get(["/refs"]),
            "GET /refs/{type}/{name...}": lambda: _get(["/refs/branch/main", "/refs/tag/v1"]),
            "GET /payloads/{blake3}": lambda: _get(f"/payloads/{one}{at}" for one in hexes for at in ats),
            "GET /payloads/{blake3}/manifest": lambda: _get(
                f"/payloads/{one}/manifest{at}" for one in hexes for at in ats
            ),
            "POST /packs/fetch": lambda: iter(
                [(f"/packs/fetch{at}", {}, one) for one in (*self.digests, packed) for at in ats]
            ),
        }

    def ask(self, http: httpx.Client, method: str, request: Request) -> httpx.Response:
        path, _, raw = request
        url = self.repo.url + path
        if method == "GET":
            return http.get(url)
        assert raw is not None
        return http.post(url, content=raw, extensions={"blake3": blake3(raw).digest()})

    def told_by(self, answer: httpx.Response, asked: str) -> list[str]:
        """What of the hidden this answer tells, beside what the question itself has said."""
        told = unpacked(answer)
        return [
            what
            for what, spellings in self.told.items()
            if any(one in told and one not in asked.encode() for one in spellings)
        ]


def unpacked(answer: httpx.Response) -> bytes:
    """The body and its headers, unpacked; JSON without spaces."""
    body = _unframed(answer.content)
    if body[:2] == b"\x1f\x8b":
        body = gzip.decompress(body)
    if answer.headers.get("content-type", "").startswith("application/json"):
        body += json.dumps(answer.json(), separators=(",", ":"), ensure_ascii=False).encode()
        body += _inner(answer.json())
    return body + str(sorted(answer.headers.items())).encode()


def _unframed(body: bytes) -> bytes:
    """A pack with its frames unpacked; other bytes as they are."""
    if not body.startswith(b"svcpack1"):
        return body
    reader = PackReader()
    frames = list(reader.feed(body))
    return body + b"".join(bytes(data) for frame in frames for _, data in frame.objects())


def _inner(value: Any) -> bytes:
    """What texts of base64 hold."""
    if isinstance(value, dict):
        return b"".join(map(_inner, value.values()))
    if isinstance(value, list):
        return b"".join(map(_inner, value))
    if isinstance(value, str) and len(value) > 40:
        try:
            return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except ValueError:
            return b""
    return b""


def tried(requests: list[Request], number: int) -> list[Request]:
    """What the caller of this number asks of a route: a few, and of the others one in three, which the next
    caller does not ask."""
    return [one for at, one in enumerate(requests) if at < FEW or played(at, number, one_in=3)]


def _get(paths: Any) -> Iterator[Request]:
    return ((path, {}, None) for path in paths)
