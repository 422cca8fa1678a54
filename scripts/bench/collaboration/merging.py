"""What preparing a merge costs the relay, against `git merge-tree --write-tree` of the same trees; CPU.

    python -m scripts.bench.collaboration.merging [--files 2000] [--edited 200] [--rounds 10] [--write]

Both branches edit files, half of them the same ones in other lines, and the branch moves some of these. git's
figure has the start of its process in it, the relay's the request. The relay's first answer, which reads the
trees from its packs, is told apart.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from localstore.core.model.collaboration import merge as merges
from localstore.core.model.collaboration import proposal as proposals
from localstore.core.model.collaboration.merge import MergePrepareRequest
from localstore.core.model.collaboration.proposal import ProposalCreate
from scripts.bench.collaboration.folders import environment, linked, svc, write
from scripts.bench.ingest import signed_in
from scripts.bench.relay_cost import Relay
from scripts.bench.shared import report
from scripts.bench.shared.cpu import Cost, serving
from svc.api import Api
from svc.http.client import Http

MOST = 1.5  # times what git takes
Files = dict[str, bytes | None]


def text(rng: random.Random) -> bytes:
    return b"".join(b"line %d of %08x\n" % (n, rng.getrandbits(32)) for n in range(rng.randint(40, 200)))


def edited(data: bytes, line: int) -> bytes:
    lines = data.splitlines(keepends=True)
    lines[line] = b"edited\n"
    return b"".join(lines)


def sides(count: int, many: int) -> tuple[Files, Files, Files]:
    """The base, and what main and the branch change of it."""
    rng = random.Random(1)
    base = {f"dir{n % 40}/sub{n % 7}/file{n}.txt": text(rng) for n in range(count)}
    names = rng.sample(sorted(base), many * 3 // 2)
    ours: Files = {name: edited(base[name], 3) for name in names[:many]}
    theirs: Files = {name: edited(base[name], -3) for name in names[many // 2 :]}
    for name in names[many // 2 : many // 2 + many // 10]:
        theirs[f"moved/{name}"] = theirs[name]
        theirs[name] = None
    return dict(base), ours, theirs


def by_git(folder: Path, base: Files, ours: Files, theirs: Files, rounds: int) -> float:
    """Milliseconds of CPU of one merge."""

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    git("init", "-q", "-b", "main", ".")
    for branch, files in (("main", base), ("topic", theirs), ("main", ours)):
        git("checkout", "-q", *(["-b"] if branch == "topic" else []), branch) if files is not base else None
        write(folder, files)
        git("add", "-A")
        git("commit", "-q", "-m", branch)
    git("gc", "-q")
    git("merge-tree", "--write-tree", "main", "topic")
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(rounds):
        git("merge-tree", "--write-tree", "main", "topic")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) * 1000 / rounds


def by_svc(base_folder: Path, base: Files, ours: Files, theirs: Files, rounds: int) -> tuple[float, float]:
    """Milliseconds of the relay's CPU for the first prepare after its start, and for a later one."""
    data = base_folder / "relay"
    with Relay(data) as relay:
        api, _ = signed_in(base_folder, relay.origin)
        env = environment(base_folder, relay.origin)
        folder, repo_id = linked(api, base_folder, env, "merged")
        _push(folder, env, base)
        svc(folder, env, "repo", "branch", "topic")
        svc(folder, env, "switch", "topic")
        _push(folder, env, theirs)
        svc(folder, env, "switch", "main")
        _push(folder, env, ours)
        api.send(proposals.CREATE, ProposalCreate(head="topic", base="main", title="x"), id=repo_id)
        credential = api.http.credential
    assert credential is not None  # it just signed in
    with Relay(data) as relay:
        api = Api(Http(relay.origin, credential))
        body = MergePrepareRequest(device_key_id=credential.key.id, strategy="squash")

        def prepare(times: int) -> float:
            cost = Cost()
            with serving(relay.pid, cost):
                for _ in range(times):
                    api.send(merges.PREPARE, body, id=repo_id, n="1")
            return cost.cpu * 1000 / times

        return prepare(1), prepare(rounds)


def _push(folder: Path, env: Mapping[str, str], files: Files) -> None:
    write(folder, files)
    svc(folder, env, "push", "-m", "x")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--edited", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", action="store_true", help="put the figures into docs/benchmarks.md")
    options = parser.parse_args()
    files = sides(options.files, options.edited)
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        (Path(folder) / "git").mkdir()
        git = by_git(Path(folder) / "git", *files, options.rounds)
        first, later = by_svc(Path(folder), *files, options.rounds)
    rows = [
        ["git merge-tree", f"{git:.0f} ms", ""],
        ["merge-prepare, the first", f"{first:.0f} ms", report.against(first / git, None)],
        ["merge-prepare", f"{later:.0f} ms", report.against(later / git, MOST)],
    ]
    heads = [f"{options.files} files, {options.edited} changed on each side", "CPU", "against git (aim)"]
    report.show("merging", f"{report.table(heads, rows)}\n\n{report.conditions()}", options.write)
    return 0 if later <= git * MOST else 1


if __name__ == "__main__":
    sys.exit(main())
