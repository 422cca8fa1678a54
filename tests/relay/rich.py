"""A repository that has something of everything that pages show, and the addresses of all its pages."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import httpx
from argon2 import PasswordHasher
from sqlalchemy import insert, update

from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.db.schema.account import account as accounts
from relay.domain.repository.settings import PANELS
from tests.relay.auth.people import PASSWORD, Browser
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

README = b"""# ![Logo](docs/logo.svg) Harbour

Tide tables for small boats: read a station, ask for **high water**, draw the week.

[Guide](docs/guide.md) \xc2\xb7 [Source](src/tides.py) \xc2\xb7 [Elsewhere](https://example.org/harbour)

![Chart of a week](docs/chart.png)
![build](https://ci.example.org/badge.svg)

## Install

```sh
svc repo clone alice/harbour
python -m pip install ./harbour
```

## Use

```python
from harbour import Station

def high_water(name: str) -> float:
    \"\"\"Hours after midnight.\"\"\"
    return max(Station(name).day(), key=lambda tide: tide.height).hour  # the highest one
```

| Station | High water | Height | Source |
| --- | --- | ---: | --- |
| Cuxhaven | 04:12 | 3.4 m | BSH |
| Brest | 06:55 | 6.9 m | SHOM |
| Saint-Malo | 08:20 | 12.1 m | SHOM |

> Do not navigate by these tables alone.

- [x] read stations
- [ ] tidal streams, see #3

1. Clone it.
2. Run `harbour --help`.
"""

SOURCE = b'''"""Tides of a station."""

from __future__ import annotations

from dataclasses import dataclass

HOURS = 24


@dataclass(frozen=True)
class Tide:
    """One high or low water."""

    hour: float
    height: float


def day(readings: list[float]) -> list[Tide]:
    """The tides of a day, from a height for each quarter of an hour."""
    tides = []
    for place in range(1, len(readings) - 1):
        before, here, after = readings[place - 1 : place + 2]
        if here > before and here >= after:  # a high water
            tides.append(Tide(place / 4 % HOURS, here))
    return tides
'''

CHANGED = SOURCE.replace(b"here >= after", b"here > after").replace(b"% HOURS", b"% HOURS or 0.0")
WORDS = (
    "Crash on an empty station",
    "Heights in feet",
    "Tidal streams",
    "Wrong hour after midnight in winter",
)
WIDE_WORDS = "A station whose name is very long is cut in the middle of a letter that has two bytes"


def picture(width: int = 480, height: int = 200) -> bytes:
    """A PNG with a wave."""
    rows = []
    for y in range(height):
        wave = [(x * 7 + y * 3) % 90 for x in range(width)]
        rows.append(b"\0" + bytes(value for x in wave for value in (60, 120 + x, 200)))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"".join(rows)))
        + chunk(b"IEND", b"")
    )


LOGO = b"""<svg xmlns="http://www.w3.org/2000/svg" width="36" height="24" onload="this.dataset.ran = 1">
<style>path { fill: none; stroke: teal; stroke-width: 4 }</style><path d="M2 16q8-14 16 0t16 0"/></svg>
"""

FILES: dict[str, bytes | None] = {
    "README.md": README,
    "LICENSE": b"Use it as you like.\n",
    "requirements.txt": b"requests==2.31.0\nnumpy>=2\n",
    "src/tides.py": SOURCE,
    "src/harbour/__init__.py": b"from tides import day\n",
    "docs/guide.md": b"# Guide\n\nAsk a station.\n",
    "data/tables.bin": bytes(range(256)) * 40,
    "docs/chart.png": picture(),
    "docs/logo.svg": LOGO,
}


@dataclass
class Rich:
    """The repository, its owner with a device and in a browser, and another person."""

    relay: Relay
    repo: Repository
    owner: Browser
    other: Account
    proposal: int
    comment: str

    @property
    def at(self) -> str:
        return f"/apps/{self.repo.body['full_name']}"

    def pages(self) -> dict[str, str]:
        """The address of a page of each kind, by a name for it."""
        dev, head = f"{self.at}/dev", self.repo.head()
        code, issues = f"{dev}?tab=code", f"{dev}?tab=issues"
        files = f"{issues}&n={self.proposal}&view=files"
        settings = f"{dev}?tab=settings&view="
        return {
            "start": "/",
            "public": self.at,
            "overview": dev,
            "fork": f"{dev}?tab=overview&view=fork",
            "folder": code,
            "subfolder": f"{code}&path=src",
            "source": f"{code}&path=src/tides.py&lines=15-20",
            "markdown": f"{code}&path=README.md",
            "markdown-source": f"{code}&path=README.md&plain=1",
            "picture": f"{code}&path=docs/chart.png",
            "bytes": f"{code}&path=data/tables.bin",
            "history": f"{code}&view=history",
            "travel": f"{code}&view=travel&path=src/tides.py",
            "travel-folder": f"{code}&view=travel",
            "blame": f"{code}&view=blame&path=src/tides.py",
            "seal": f"{code}&seal={head}",
            "compare": f"{code}&view=compare&head=streams",
            "compare-none": f"{code}&view=compare",
            "push": f"/apps/{self.repo.body['owner']}/empty/dev?tab=code&view=push&wait=1",
            "empty": f"/apps/{self.repo.body['owner']}/empty/dev",
            "empty-code": f"/apps/{self.repo.body['owner']}/empty/dev?tab=code",
            "issues": issues,
            "issues-filtered": f"{issues}&label=bug&state=all",
            "issues-none": f"{issues}&author=nobody",
            "issue": f"{issues}&n=1",
            "issue-new": f"{issues}&view=new",
            "issue-edit": f"{issues}&n=1&view=edit",
            "comment-edit": f"{issues}&n=1&view=edit&comment={self.comment}",
            "proposals": f"{issues}&kind=proposals&state=all",
            "proposal": f"{issues}&n={self.proposal}",
            "proposal-files": files,
            "proposal-thread": f"{files}&path=src/tides.py&lines=20-23#new-thread",
            "proposal-new": f"{issues}&kind=proposals&view=new",
            "proposal-named": f"{issues}&kind=proposals&view=new&head=winter",
            "merge": f"{issues}&n={self.proposal}&view=merge&wait=1",
            "workflows": f"{dev}?tab=workflows",
            "releases": f"{dev}?tab=releases",
            "release-new": f"{dev}?tab=releases&view=release",
            "security": f"{dev}?tab=security",
            "insights": f"{dev}?tab=insights",
            **{f"settings-{panel}": settings + panel for panel in PANELS},
            **{
                f"settings-{asks}": f"{settings}lifecycle&note={asks}"
                for asks in ("delete", "visibility", "transfer")
            },
            "missing": "/apps/nobody/nothing",
            "tokens": "/settings?tab=tokens",
            "ways": "/settings?tab=sign-in",
            "keys": "/settings/keys",
            "devices": "/settings/devices",
            "terminal": "/cli/authorize",
        }

    def close(self) -> None:
        self.owner.close()
        self.repo.http.close()


def build(relay: Relay, handle: str) -> Rich:
    """The repository `harbour` of a new account, as after some weeks of work."""
    who, other = relay.account(handle), relay.account(f"{handle}-mate")
    http = relay.client(who)
    repo = create(
        http,
        who,
        "harbour",
        visibility="public",
        description="Tide tables for small boats, with a week drawn as a picture",
    )
    create(http, who, "empty", visibility="public")
    repo.seal(
        FILES, {"docs/guide.md": b"# Guide\n\nAsk a station for its tides.\n"}, messages=["First", "Say more"]
    )
    for branch in ("streams", "winter"):
        repo.branch(branch, str(repo.head()))
    messages = ["Count a flat top once\n\nTwo equal readings were two high waters.", "Name the hour"]
    repo.seal(
        {"src/tides.py": CHANGED},
        {"docs/hours.md": b"# Hours\n\nFrom 0 to 24.\n"},
        branch="streams",
        messages=messages,
    )
    repo.seal({"src/winter.py": b"OFFSET = 1\n"}, branch="winter", messages=["Shift by an hour in winter"])
    for label, color in (("bug", "d73a4a"), ("good first issue", "7057ff"), ("docs", "0075ca")):
        ok(http.post(f"{repo.url}/labels", json={"name": label, "color": color}))
    with relay.client(other) as mate:
        comment = _discuss(repo, mate)
        proposal = _propose(relay, repo, other, mate)
    _release(repo)
    ok(
        http.put(
            f"{repo.url}/protections/main",
            json={"require_review": True, "required_approvals": 1, "require_checks": True},
        )
    )
    return Rich(relay, repo, _browser(relay, who), other, proposal, comment)


def _discuss(repo: Repository, mate: httpx.Client) -> str:
    """30 issues; the first has comments. Returns the id of one of the owner's."""
    for number in range(30):
        title = WIDE_WORDS if number == 20 else WORDS[number % len(WORDS)]
        body = (
            "Steps:\n\n1. `harbour Brest`\n2. See *this*:\n\n```\nIndexError: list index out of range\n```\n"
        )
        labels = [["bug"], [], ["docs", "good first issue"]][number % 3]
        sender = repo.http if labels else mate
        ok(sender.post(f"{repo.url}/issues", json={"title": title, "body": body, "labels": labels}))
    ok(mate.post(f"{repo.url}/issues/1/comments", json={"body": "Seen here as well, with **Cuxhaven**."}))
    comment = ok(
        repo.http.post(f"{repo.url}/issues/1/comments", json={"body": "Thanks. It is `day([])`, see #3."})
    )
    ok(repo.http.patch(f"{repo.url}/issues/2", json={"state": "closed", "state_reason": "completed"}))
    ok(repo.http.patch(f"{repo.url}/issues/1", json={"add_assignees": ["@me"]}))
    return str(comment["id"])


def _propose(relay: Relay, repo: Repository, other: Account, mate: httpx.Client) -> int:
    """A proposal with checks, a review and threads. Returns its number."""

    async def let_write() -> None:
        async with relay.node.db.write() as tx:
            row = {"repo_id": repo.id, "account_id": other.id, "role": "write", "created_at": now_ms()}
            await tx.many(insert(tables["collaborator"]), [row])

    relay.run(let_write())
    body = "Two equal readings were counted as two high waters.\n\nCloses #1.\n\n- [x] tests\n- [ ] docs\n"
    sent: dict[str, Any] = {"title": "Count a flat top once", "body": body, "head": "streams", "base": "main"}
    number = int(ok(repo.http.post(f"{repo.url}/proposals", json=sent))["number"])
    url, head = f"{repo.url}/proposals/{number}", repo.head("streams")
    lines = {"path": "src/tides.py", "start": 23, "end": 23, "seal_id": head}
    thread = ok(mate.post(f"{url}/threads", json={**lines, "body": "Why not `>=` on **both** sides?"}))
    ok(repo.http.post(f"{url}/threads/{thread['id']}/comments", json={"body": "Then a flat top has none."}))
    ok(
        mate.post(
            f"{url}/threads",
            json={
                **lines,
                "start": 24,
                "end": 24,
                "body": "Shorter:",
                "suggestion": "            tides.append(Tide(place / 4, here))",
            },
        )
    )
    ok(
        mate.post(
            f"{url}/reviews",
            json={"verdict": "request_changes", "body": "Please add a *test* of a flat top."},
        )
    )
    ok(mate.post(f"{repo.url}/issues/{number}/comments", json={"body": "I can look at it again tomorrow."}))
    for name, conclusion in (("ci/test", "success"), ("ci/lint", "failure"), ("ci/docs", None)):
        run = {"seal_id": head, "name": name, "summary": f"{name} of 3 jobs"}
        ok(
            repo.http.post(
                f"{repo.url}/runs", json={**run, **({"conclusion": conclusion} if conclusion else {})}
            )
        )
    return number


def _release(repo: Repository) -> None:
    """Two releases, the second with a file."""
    for version in ("v0.9", "v1.0"):
        notes = "## New\n\n- **Heights** in metres\n- #2 is fixed\n"
        ok(
            repo.http.post(
                f"{repo.url}/releases", json={"version": version, "seal_id": repo.head(), "notes": notes}
            )
        )


def _browser(relay: Relay, who: Account) -> Browser:
    """A browser in which the account has signed in with a password."""

    async def set_password() -> None:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
        async with relay.node.db.write() as tx:
            await tx.run(
                update(accounts).where(accounts.c.id == who.id).values(password_hash=cheap.hash(PASSWORD))
            )

    relay.run(set_password())
    browser = Browser(relay.url)
    answer = browser.sign_in(who.handle or "")
    assert answer.status_code == 303, answer.text
    return browser
