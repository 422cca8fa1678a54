"""Measures the relay's CPU for lists of proposals: some pages without and with filters, in repositories with
100,000 and with 1,000 proposals.

    python -m scripts.bench.collaboration.proposals [--proposals 100000] [--requests 200] [--write]

Each filter selects the same number of proposals in both repositories, spread over all of them. The SQL
statements shown are those of one request. `scripts.bench.collaboration` measures issues in the same way.
"""

from __future__ import annotations

import argparse
import secrets
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model import repo as repos
from localstore.core.model.repo import RepoCreate
from relay.base.words import find_words
from relay.db.collaboration import proposal as rows
from relay.db.engine.sqlite import compile_statement
from scripts.bench.collaboration.__main__ import AUTHORS, HITS, MOST, SMALL, database, people
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import Caller, MeasuredRelay, Wire
from scripts.bench.shared import report

FILTERS = {
    "first page": "",
    "100 of them": "?limit=100",
    "closed": "?state=closed",
    "merged": "?state=merged",
    "all": "?state=all",
    "author": "?author=%40me",
    "assignee": "?assignee=%40me",
    "reviewer": "?reviewer=%40me",
    "reviewer, all": "?reviewer=%40me&state=all",
    "label": "?label=rare",
    "label, all": "?label=rare&state=all",
    "involves": "?involves=%40me",
    "involves, all": "?involves=%40me&state=all",
    "head, all": "?head=rare&state=all",
    "base": "?base=rare",
    "base, all": "?base=rare&state=all",
    "base, common, all": "?base=main&state=all",
    "drafts": "?draft=true",
    "drafts, all": "?draft=true&state=all",
    "no drafts, all": "?draft=false&state=all",
    "search": "?search=needle",
    "search, common": "?search=text",
    "search, both": "?search=text%20needle&state=all",
    "base and author": "?base=main&author=%40me",
    "common base, rare label": "?base=main&label=rare&state=all",
}


def insert(db: sqlite3.Connection, table: str, found: list[dict[str, Any]]) -> None:
    names = list(found[0])
    marks = ", ".join(f":{name}" for name in names)
    db.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", found)


def fill(data: Path, repo_id: str, count: int, me: str) -> None:
    """Insert `count` proposals by AUTHORS people. Each measured filter, such as a label, selects HITS of the
    proposals."""
    now, every = int(time.time() * 1000), count // HITS
    tables: dict[str, list[dict[str, Any]]] = {
        name: []
        for name in ("subject", "proposal", "version", "subject_word", "subject_label", "part", "reviewer")
    }
    for n in range(1, count + 1):
        hit = n % every == 0
        state = {1: "closed", 3: "merged"}.get(n % every, "open")
        one = {"repo_id": repo_id, "number": n}
        of = {**one, "kind": "proposal", "state": state}
        title = f"a needle in {n}" if hit else f"a proposal of the number {n}"
        author = me if hit else f"author-{n % AUTHORS}"
        times = {"created_at": now + n, "updated_at": now + n}
        said = {"title": title, "body": "text", "author_id": author, "comments": 0}
        tables["subject"].append({**of, **said, **times})
        branches = {"head_id": f"h{n}", "head": "rare" if hit else f"h{n}", "base_id": "b"}
        at = {"base": "rare" if hit and n // every % 2 else "main", "version": 1, "head_seal": f"s{n}"}
        tables["proposal"].append({**one, "state": state, "draft": n % every == 4, **branches, **at})
        made = {"n": 1, "head": f"s{n}", "base": "s", "settled": True, "by_id": author, "created_at": now}
        tables["version"].append({**one, **made})
        tables["subject_word"] += [{**of, "word": word} for word in find_words(title, "text")]
        tables["part"].append({**of, "account_id": author, "posted": True, "assigned": False})
        if hit:
            tables["subject_label"].append({**of, "folded": "rare"})
        if n % every == 2:
            tables["part"].append({**of, "account_id": me, "posted": False, "assigned": True})
            tables["reviewer"].append({**one, "account_id": me, "state": state, "requested": True})
    with database(data) as db:
        people(db, "author", AUTHORS, me)
        db.execute("INSERT INTO label VALUES (?, 'rare', 'rare', 'ededed', NULL)", (repo_id,))
        for name, found in tables.items():
            insert(db, name, found)
        db.execute("INSERT INTO numbering VALUES (?, ?)", (repo_id, count))


def plans(data: Path) -> str:
    names = [
        {"state"},
        *({name} for name in rows._LINKS if name != "search_2"),
        {"head"},
        {"base"},
        {"draft"},
    ]
    with database(data) as db:
        said = []
        for filters in names:
            form = compile_statement(rows.keyset_of(frozenset(filters)).first)
            steps = db.execute(f"EXPLAIN QUERY PLAN {form.sql}", [None] * form.sql.count("?")).fetchall()
            said += [f"{', '.join(filters)}:", *(f"    {step[3]}" for step in steps)]
        return "\n".join(said)


def pages(wire: Wire, caller: Caller, repo_ids: list[str], count: int) -> dict[str, list[float]]:
    """Measure a page of the list of proposals with each of the filters in FILTERS, in each repository in
    turn. Returns name of the filter → microseconds of CPU in each repository."""
    figures = {}
    for name, query in FILTERS.items():
        asked = [caller.get(proposals.LIST.target(id=one) + query) for one in repo_ids]
        for request in asked:
            for _ in range(10):
                wire.send(request)
            if not msgspec.json.decode(wire.answers[-1])["items"]:
                raise RuntimeError(f"{name} finds nothing")
        rounds = [[wire.cost([request] * count) for request in asked] for _ in range(3)]
        figures[name] = [min(one) for one in zip(*rounds, strict=True)]
    return figures


def measure(count: int, requests: int) -> tuple[dict[str, list[float]], str]:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        data = Path(folder) / "relay"
        with MeasuredRelay(data) as relay:
            api, other = signed_in(Path(folder), relay.origin)
            made = [api.send(repos.CREATE, RepoCreate(name=secrets.token_hex(4))).id for _ in range(2)]
            viewer = api.send(issues.CREATE, issues.IssueCreate(title="who am I"), id=other).author.id
            credential = api.http.credential
            assert credential is not None  # it just signed in
        for repo_id, number in zip(made, (SMALL, count), strict=True):
            fill(data, repo_id, number, viewer)
        with MeasuredRelay(data) as again:
            return pages(Wire(again), Caller(again.origin, credential), made, requests), plans(data)


def format_figures(figures: dict[str, list[float]], count: int) -> str:
    lines = [
        [name, f"{few:.0f} µs", f"{many:.0f} µs", report.against(many / few, MOST)]
        for name, (few, many) in figures.items()
    ]
    heads = ["list", f"{SMALL} proposals", f"{count} proposals", "ratio (aim)"]
    return f"{report.table(heads, lines)}\n\n{report.conditions()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--proposals", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    figures, steps = measure(options.proposals, options.requests)
    report.show("proposals", format_figures(figures, options.proposals), options.write)
    print(f"\n{steps}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
