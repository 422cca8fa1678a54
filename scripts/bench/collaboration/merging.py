"""Compares the relay's CPU for preparing a merge with that of `git merge-tree --write-tree` for the same
trees.

    python -m scripts.bench.collaboration.merging [--files 2000] [--edited 200] [--branches 10] [--write]

Main and each branch edit files. Half of the files that a branch edits are also edited by main, in other
lines; the branch moves some of these. git makes each merge twice. The second time, when it has nothing to
write, is compared with the relay's.

The relay prepares each merge three times. Before the first, no result is cached. Before the second, main
moves, and a job of the relay tries the merge of each open proposal. The third repeats the second. git's
figure includes the start of its process, the relay's figure the request. The relay's first answer, for which
it loads code and reads main, is shown separately.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from localstore.core.model import merge as merges
from localstore.core.model import proposal as proposals
from localstore.core.model import repo as repos
from localstore.core.model.merge import MergePrepareRequest
from localstore.core.model.proposal import ProposalCreate, ProposalQuery
from localstore.core.model.repo import RepoCreate
from scripts.bench.collaboration.folders import branch, seal, write
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import MeasuredRelay
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from svc.api import Api
from svc.http.client import Http

MOST = 1.5  # times what git takes
Files = dict[str, bytes | None]


def text(rng: random.Random) -> bytes:
    return b"".join(b"line %d of %08x\n" % (n, rng.getrandbits(32)) for n in range(rng.randint(40, 200)))


def edit_line(data: bytes, line: int) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[line] = b"edited\n"
    return b"".join(lines)


def sides(count: int, many: int, branches: int) -> tuple[Files, Files, list[Files]]:
    """Make the versions to merge. Returns (files of the base, changes of main, changes of each branch). The
    base has `count` files, of which main and each branch edit `many`."""
    rng = random.Random(1)
    base = {f"dir{n % 40}/sub{n % 7}/file{n}.txt": text(rng) for n in range(count)}
    names = rng.sample(sorted(base), many)
    ours: Files = {name: edit_line(base[name], 3) for name in names}
    return dict(base), ours, [_branch(base, names, rng) for _ in range(branches)]


def _branch(base: dict[str, bytes], mains: list[str], rng: random.Random) -> Files:
    half = len(mains) // 2
    both = rng.sample(mains, half)
    others = rng.sample(sorted(base.keys() - set(mains)), half)
    made: Files = {name: edit_line(base[name], -3) for name in [*both, *others]}
    for name in both[: len(mains) // 10]:
        made[f"moved/{name}"] = made[name]
        made[name] = None
    return made


def by_git(folder: Path, base: Files, ours: Files, theirs: list[Files]) -> tuple[float, float]:
    """Measure one merge by git, made twice. Returns the milliseconds of CPU of (the first time, the second
    time). `base`, `ours`, `theirs`: as `sides` returns them."""

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    def commit(files: Files) -> None:
        write(folder, files)
        git("add", "-A")
        git("commit", "-q", "-m", "x")

    git("init", "-q", "-b", "main", ".")
    commit(base)
    for number, files in enumerate(theirs):
        git("checkout", "-q", "-b", f"topic{number}", "main")
        commit(files)
    git("checkout", "-q", "main")
    commit(ours)
    git("gc", "-q")

    def measure_merges() -> float:
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        for number in range(len(theirs)):
            git("merge-tree", "--write-tree", "main", f"topic{number}")
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) * 1000 / len(theirs)

    return measure_merges(), measure_merges()


def make_proposals(api: Api, name: str, base: Files, ours: Files, theirs: list[Files]) -> tuple[str, str]:
    """Create a repository with a proposal for each branch. `base`, `ours`, `theirs`: as `sides` returns them.
    Returns (id of the repository, id of the newest seal of main)."""
    repo_id = api.send(repos.CREATE, RepoCreate(name=name)).id
    head = seal(api, repo_id, "main", base, None)
    for number, files in enumerate(theirs):
        branch(api, repo_id, f"topic{number}", head)
        seal(api, repo_id, f"topic{number}", files, head)
        wish = ProposalCreate(head=f"topic{number}", base="main", title="x")
        api.send(proposals.CREATE, wish, id=repo_id)
    return repo_id, seal(api, repo_id, "main", ours, head) if ours else head


def await_trials(api: Api, repo_id: str) -> None:
    """Wait until the relay has tried the merge of each proposal."""
    while True:
        shown = api.send(proposals.LIST, query=ProposalQuery(limit=100), id=repo_id).items
        if all(one.merge_state != "unknown" for one in shown):
            return
        time.sleep(0.2)


def by_svc(folder: Path, base: Files, ours: Files, theirs: list[Files]) -> tuple[float, ...]:
    """Measure the relay's CPU milliseconds for the preparation of one merge. `base`, `ours`, `theirs`: as
    `sides` returns them. Returns four figures: for the first merge after the relay's start, for a merge that
    was not tried yet, for one that was tried since main moved, and for the last one again."""
    data = folder / "relay"
    with MeasuredRelay(data) as relay:
        api, _ = signed_in(folder, relay.origin)
        repo_id, head = make_proposals(api, "merged", base, ours, theirs)
        await_trials(api, repo_id)
        credential = api.http.credential
    assert credential is not None  # it just signed in
    with MeasuredRelay(data) as relay:
        api = Api(Http(relay.origin, credential))
        body = MergePrepareRequest(device_key_id=credential.key.id, strategy="squash")

        def prepare(first: int, last: int) -> float:
            cost = Cost()
            with serving(relay.pid, cost):
                for number in range(first, last + 1):
                    api.send(merges.PREPARE, body, id=repo_id, n=str(number))
            return cost.cpu * 1000 / (last + 1 - first)

        first, untried = prepare(1, 1), prepare(2, len(theirs))
        seal(api, repo_id, "main", {"new": b"new\n"}, head)
        await_trials(api, repo_id)
        return first, untried, prepare(1, len(theirs)), prepare(1, len(theirs))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--edited", type=int, default=200)
    parser.add_argument("--branches", type=int, default=10, help="20 at most: the job tries no more")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    files = sides(options.files, options.edited, options.branches)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        (Path(folder) / "git").mkdir()
        once, git = by_git(Path(folder) / "git", *files)
        svc = by_svc(Path(folder), *files)
    said = ("the first after a start", "not tried before", "tried before", "the same again")
    rows = [
        ["git merge-tree, each merge once", f"{once:.0f} ms", ""],
        ["git merge-tree, the same again", f"{git:.0f} ms", ""],
        *(
            [f"merge-prepare, {name}", f"{took:.0f} ms", report.against(took / git, MOST if n > 1 else None)]
            for n, (name, took) in enumerate(zip(said, svc, strict=True))
        ),
    ]
    heads = [f"{options.files} files, {options.edited} changed on each side", "CPU", "against git (aim)"]
    report.show("merging", f"{report.table(heads, rows)}\n\n{report.conditions()}", options.write)
    return 0 if svc[2] <= git * MOST else 1


if __name__ == "__main__":
    sys.exit(main())
