"""Measures what lists of issues cost the relay, and how long a comment takes if 1,000 people watch.

    python -m scripts.bench.collaboration [--issues 100000] [--requests 300] [--write]

The lists of a repository with 100,000 issues are compared with those of a repository with 1,000 issues: the
first page without a filter, and with filters such as a label or an author. Each filter selects the same
number of issues in both repositories, spread over all of them. Requests are prepared before the first one is
sent. Figures are microseconds of CPU of the relay's whole process tree, with SQLite. The query plans shown
are SQLite's own.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from localstore.core.model import issue as issues
from localstore.core.model import repo as repos
from localstore.core.model.issue import CommentBody
from localstore.core.model.repo import RepoCreate
from relay.base.words import find_words
from relay.db.collaboration import issue as rows
from relay.db.engine.sqlite import compile_statement
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import Caller, MeasuredRelay, Wire
from scripts.bench.shared import report
from svc.http.credential import Credential

SMALL, HITS, AUTHORS, WATCHERS, COMMENTS = 1000, 40, 200, 1000, 20
MOST = 1.5  # times what the small repository costs
FILTERS = {
    "first page": "",
    "closed": "?state=closed",
    "all": "?state=all",
    "author": "?author=%40me",
    "assignee": "?assignee=%40me",
    "label": "?label=rare",
    "involves": "?involves=%40me",
    "involves, all": "?involves=%40me&state=all",
    "label, all": "?label=rare&state=all",
    "search": "?search=needle",
    "search, common": "?search=text",
    "search, both": "?search=text%20needle&state=all",
    "label and author": "?label=rare&author=%40me",
}
PLANS = {
    "first page": {"state"},
    "author": {"state", "author"},
    "assignee": {"state", "assignee"},
    "label": {"state", "label"},
    "involves": {"state", "involves"},
    "involves, all": {"involves"},
    "label, all": {"label"},
    "search": {"state", "search"},
    "search, both": {"search", "search_1"},
    "label and author": {"state", "label", "author"},
}


@contextlib.contextmanager
def database(data: Path) -> Iterator[sqlite3.Connection]:
    (file,) = [one for one in data.rglob("*") if one.suffix in (".db", ".sqlite", ".sqlite3")]
    with contextlib.closing(sqlite3.connect(file)) as connection:
        yield connection
        connection.commit()


def people(db: sqlite3.Connection, name: str, count: int, like: str) -> None:
    """Insert `count` accounts as copies of the account `like`. Their ids and handles are `name`-0, `name`-1
    and so on."""
    db.executemany(
        "INSERT OR IGNORE INTO account SELECT ?1, kind, ?1, email, name, password_hash, phase, operator, "
        "created_at, disabled_at FROM account WHERE id = ?2",
        [(f"{name}-{n}", like) for n in range(count)],
    )


def fill(data: Path, repo_id: str, count: int, me: str) -> None:
    """Insert `count` issues by AUTHORS people. Each measured filter, such as a label, selects HITS of the
    issues."""
    now, every = int(time.time() * 1000), count // HITS
    with database(data) as db:
        people(db, "author", AUTHORS, me)
        db.execute("INSERT INTO label VALUES (?, 'rare', 'rare', 'ededed', NULL)", (repo_id,))
        subjects, labels, parts, found = [], [], [], []
        for n in range(1, count + 1):
            hit, closed = n % every == 0, n % every == 1
            title = f"a needle in {n}" if hit else f"an issue of the number {n}"
            state = "closed" if closed else "open"
            author = me if hit else f"author-{n % AUTHORS}"
            subjects.append((repo_id, n, state, title, "text", author, now + n, now + n))
            found += [(repo_id, n, word, state) for word in find_words(title, "text")]
            parts.append((repo_id, n, author, state, True, False))
            if hit:
                labels.append((repo_id, n, state))
            if n % every == 2:
                parts.append((repo_id, n, me, state, False, True))
        db.executemany(
            "INSERT INTO subject (repo_id, number, kind, state, title, body, author_id, "
            "comments, created_at, updated_at) VALUES (?, ?, 'issue', ?, ?, ?, ?, 0, ?, ?)",
            subjects,
        )
        db.executemany("INSERT INTO subject_word VALUES (?, ?, ?, 'issue', ?)", found)
        db.executemany("INSERT INTO subject_label VALUES (?, ?, 'rare', 'issue', ?)", labels)
        db.executemany("INSERT INTO part VALUES (?, ?, ?, 'issue', ?, ?, ?)", parts)
        db.execute("INSERT INTO numbering VALUES (?, ?)", (repo_id, count))


def crowd(data: Path, repo_id: str, me: str) -> None:
    """Insert WATCHERS accounts that watch the repository."""
    with database(data) as db:
        people(db, "watcher", WATCHERS, me)
        for n in range(WATCHERS):
            db.execute("INSERT INTO watch VALUES (?, ?, 0)", (repo_id, f"watcher-{n}"))


def plans(data: Path) -> str:
    with database(data) as db:
        said = []
        for name, filters in PLANS.items():
            form = compile_statement(rows.keyset_of(frozenset(filters)).first)
            steps = db.execute(f"EXPLAIN QUERY PLAN {form.sql}", [None] * form.sql.count("?")).fetchall()
            said += [f"{name}:", *(f"    {step[3]}" for step in steps)]
        return "\n".join(said)


def pages(wire: Wire, caller: Caller, repo_id: str, count: int) -> dict[str, float]:
    """Measure the first page of the list of issues with each of the filters in FILTERS. Returns name of the
    filter → microseconds of CPU."""
    figures = {}
    for name, query in FILTERS.items():
        request = caller.get(issues.LIST.target(id=repo_id) + query)
        for _ in range(20):
            wire.send(request)
        hits = len(msgspec.json.decode(wire.answers[-1])["items"])
        if not hits:
            raise RuntimeError(f"{name} finds nothing")
        figures[name] = min(wire.cost([request] * count) for _ in range(3))
    return figures


def comments(wire: Wire, caller: Caller, repo_id: str) -> float:
    """Send comments one after another. Returns the median seconds until a comment is answered."""
    body = msgspec.json.encode(CommentBody(body="to all who watch"))
    took = []
    for _ in range(COMMENTS):
        request = caller.post(issues.COMMENT.target(id=repo_id, n="1"), body)
        begun = time.perf_counter()
        with contextlib.suppress(RuntimeError):  # 201 is no 200 to it
            wire.send(request)
        took.append(time.perf_counter() - begun)
    return statistics.median(took)


def measure(count: int, requests: int) -> tuple[dict[str, tuple[float, float]], dict[str, float], str]:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        data = Path(folder) / "relay"
        with MeasuredRelay(data) as relay:
            api, small = signed_in(Path(folder), relay.origin)
            names = {"large": count, "quiet": SMALL, "watched": SMALL}
            made = {
                name: api.send(repos.CREATE, RepoCreate(name=f"{name}-{secrets.token_hex(3)}")).id
                for name in names
            }
            credential = api.http.credential
            assert credential is not None  # it just signed in
            viewer = api.send(issues.CREATE, issues.IssueCreate(title="who am I"), id=made["quiet"]).author.id
        with database(data) as db:
            for table in ("subject", "part", "numbering"):
                db.execute(f"DELETE FROM {table}")
        fill(data, small, SMALL, viewer)
        for name, number in names.items():
            fill(data, made[name], number, viewer)
        crowd(data, made["watched"], viewer)
        with MeasuredRelay(data) as again:
            return (*_figures(again, credential, small, made, requests), plans(data))


def _figures(
    relay: MeasuredRelay, credential: Credential, small: str, made: dict[str, str], requests: int
) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    caller, wire = Caller(relay.origin, credential), Wire(relay)
    few, many = (pages(wire, caller, one, requests) for one in (small, made["large"]))
    waits = {name: comments(wire, caller, made[name]) for name in ("quiet", "watched")}
    return {name: (few[name], many[name]) for name in FILTERS}, waits


def format_figures(figures: dict[str, tuple[float, float]], waits: dict[str, float]) -> str:
    lines = [
        [name, f"{few:.0f} µs", f"{many:.0f} µs", report.against(many / few, MOST)]
        for name, (few, many) in figures.items()
    ]
    lists = report.table(["list", f"{SMALL} issues", "many issues", "ratio (aim)"], lines)
    quiet, watched = waits["quiet"] * 1000, waits["watched"] * 1000
    said = (
        f"A comment is answered in {quiet:.1f} ms, and where {WATCHERS} watch in {watched:.1f} ms (median)."
    )
    return f"{lists}\n\n{said}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--issues", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    figures, waits, steps = measure(options.issues, options.requests)
    report.show("collaboration", format_figures(figures, waits), options.write)
    print(f"\n{steps}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
