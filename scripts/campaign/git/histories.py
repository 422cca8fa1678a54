"""Makes random histories, and checks what git reads of them.

    python -m scripts.campaign.git.histories FIRST COUNT [SEALS]
    python -m scripts.campaign.git.histories 1 20 150

For each seed it makes a repository by the relay's routes: seals with odd names, renames, binaries, empty
files, deep folders and files that become folders, merges with two parents, proposals merged by each strategy,
branches, tags, and a fork. Git clones it now and then. Every commit must have the files of its seal, as the
relay lists them, and the parents of its seal. `git fsck --strict` must find nothing, and the ids must stay
the same when the cache is deleted. The fork is cloned again after the repository from which it was forked is
deleted. Prints the seeds that failed.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
from blake3 import blake3

from localstore.core import seal as kernel
from scripts.campaign.git.places import CheckFailed, GitProgram, history, relay_on, require, say
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, _delta, create, ok
from tests.relay.merges import finalize, payload, prepare, propose

NAMES = (
    *(
        "a",
        "A",
        "a.txt",
        "a-b",
        "a b",
        " lead",
        "trail ",
        "ünï",
        "u\u0308ni",
        "漢字",
        "ß",
        "emoji 🎈",
        "-dash",
    ),
    *(
        "CON",
        "x.",
        "'quoted'",
        'double"',
        "semi;colon",
        "star*",
        "$HOME",
        "#",
        "100%",
        "~",
        "a~b",
        "{}",
        "[x]",
    ),
    *(".gitignore", ".gitk", "git", "x.git", "HEAD", "refs", "é", "e\u0301", "a0", "a."),
)
AUTHORS = (
    *(
        None,
        "Ada",
        "Ada <ada@example.org>",
        "Ada <ada@example.org> 1700000000 +0530",
        "<>",
        " . ",
        "A\tB",
        "名",
    ),
    *(
        "x <y> 0 +9999",
        "a <b c> 99 -0000",
        "Ada <ada@example.org> 1700000000 +0530 more",
        "a\nb <c>\nd",
        "<<>>",
    ),
)
MESSAGES = ("change", "two\n\nparagraphs\n", "ünï 🎈", "\n\n  led by space", "-x", "trailing\n\n\n", "#1")
STRATEGIES = ("merge", "squash", "rebase", "fast_forward")
Files = dict[str, bytes]


class GrowingRepository:
    """A repository that grows at random. `files`: branch → the files of its newest seal."""

    def __init__(self, seed: int, repository: Repository) -> None:
        self.chance, self.repository = random.Random(seed), repository
        self.files: dict[str, Files] = {"main": {}}
        self.heads: dict[str, str] = {}
        self.seals: list[str] = []
        self.done: Counter[str] = Counter()

    def grow(self, seals: int) -> None:
        while len(self.seals) < seals:
            acts = [self._seal] * 8 + [
                self._branch,
                self._tag,
                self._merge,
                self._merge,
                *[self._propose] * 3,
            ]
            acts += [self._delete]
            act = self.chance.choice(acts) if self.heads else self._seal
            act()

    def _seal(self) -> None:
        self._make(self.chance.choice(list(self.files)), self.chance.choice((1, 1, 2, 5)))

    def _make(self, branch: str, count: int) -> None:
        """Seal `count` random versions of the branch's files, in one request."""
        versions = []
        files = self.files[branch]
        for _ in range(count):
            files = dict(files)
            for _ in range(self.chance.choice((0, 1, 1, 2, 6))):
                self._change(files)
            versions.append(files)
        self._commit(branch, versions, ())

    def _commit(self, branch: str, versions: list[Files], parents: tuple[str, ...]) -> None:
        """Seal these versions of the branch's files, one after another, and record the seals."""
        changes: list[dict[str, bytes | None]] = []
        before = self.files[branch]
        for after in versions:
            gone = dict.fromkeys(before.keys() - after.keys())
            changes.append(gone | {path: data for path, data in after.items() if before.get(path) != data})
            before = after
        made = _seal(self.repository, branch, changes, parents, self.chance)
        self.files[branch], self.heads[branch] = versions[-1], made[-1]
        self.seals += made
        self.done["seals"] += len(made)

    def _change(self, files: Files) -> None:
        chance = self.chance
        path = chance.choice(list(files)) if files else ""
        match chance.randrange(6) if files else 0:
            case 0 | 1:
                self._put(files, self._path(), self._content())
            case 2:
                files[path] = self._content()
            case 3:
                del files[path]
            case 4:  # renamed
                self._put(files, self._path(), files.pop(path))
            case 5:  # a whole folder goes elsewhere
                folder = path.rpartition("/")[0]
                moved = [one for one in files if one.startswith(f"{folder}/")] if folder else []
                to = self._path()
                for one in moved:
                    self._put(files, f"{to}{one[len(folder) :]}", files.pop(one, b""))

    def _put(self, files: Files, path: str, data: bytes) -> None:
        """Put a file into `files`. Removes files that are in its way: files below this path, and a file where
        the path needs a folder."""
        if len(path.encode()) > 800 or path.count("/") > 30:
            return
        for other in [one for one in files if one.startswith(f"{path}/") or path.startswith(f"{one}/")]:
            del files[other]
            self.done["a file where a folder was, or the other way round"] += 1
        files[path] = data

    def _path(self) -> str:
        depth = self.chance.choice((1, 1, 2, 2, 3, 4, 12))
        return "/".join(self.chance.choice(NAMES) for _ in range(depth))

    def _content(self) -> bytes:
        chance = self.chance
        match chance.randrange(5):
            case 0:
                return b""
            case 1:
                return chance.randbytes(chance.randrange(1, 5000))
            case 2:
                return b"same\n" * chance.randrange(1, 3)
            case _:
                return b"".join(b"line %d\n" % chance.randrange(9) for _ in range(chance.randrange(40)))

    def _branch(self) -> None:
        start = self.chance.choice(list(self.heads))
        name = f"b{len(self.done)}-{sum(self.done.values())}/ü"
        self.repository.branch(name, self.heads[start])
        self.files[name], self.heads[name] = dict(self.files[start]), self.heads[start]
        self.done["branches"] += 1

    def _tag(self) -> None:
        # A fork begins with the tags of its source, so the names have the id of the repository.
        name = f"v{sum(self.done.values())}-{self.repository.id}"
        body = {"type": "tag", "name": name, "head": self.chance.choice([*self.seals, *self.heads.values()])}
        ok(self.repository.http.post(f"{self.repository.url}/refs", json=body))
        self.done["tags"] += 1

    def _merge(self) -> None:
        """Merge one branch into another by a seal with two parents, which has files of both."""
        branch = self.chance.choice(list(self.heads))
        others = [name for name in self.heads if self.heads[name] != self.heads[branch]]
        if not others:
            return
        other = self.chance.choice(others)
        merged = dict(self.files[branch])
        for path, data in self.files[other].items():
            if self.chance.random() < 0.5:
                self._put(merged, path, data)
        self._commit(branch, [merged], (self.heads[other],))
        self.done["merges with two parents"] += 1

    def _read_newest_files(self, branch: str) -> Files:
        """The files of the newest seal of a branch, read from the relay."""
        return files_of(self.repository, self.heads[branch])

    def _propose(self) -> None:
        base = self.chance.choice(list(self.heads))
        heads = [name for name in self.heads if self.heads[name] != self.heads[base]]
        if not heads:
            return
        head, strategy = self.chance.choice(heads), self.chance.choice(STRATEGIES)
        try:
            number = propose(self.repository, head, base)
        except AssertionError:
            self.done["proposals of nothing"] += 1
            return
        prepared = prepare(self.repository, number, strategy)
        if prepared.is_success:
            ok(finalize(self.repository, number, prepared.json()))
            self.heads[base] = self.repository.head(base) or ""
            self.files[base] = self._read_newest_files(base)
            self.done[f"merged by {strategy}"] += 1
        else:
            self.done["conflicts"] += 1
            ok(
                self.repository.http.patch(
                    f"{self.repository.url}/proposals/{number}", json={"state": "closed"}
                )
            )

    def _delete(self) -> None:
        names = [name for name in self.heads if name != "main"]
        if len(names) > 3:
            name = self.chance.choice(names)
            ok_empty(self.repository.http.delete(f"{self.repository.url}/refs/branch/{quote(name)}"))
            del self.heads[name], self.files[name]
            self.done["branches deleted"] += 1


def ok_empty(answer: httpx.Response) -> None:
    require(answer.is_success, f"{answer.request.method} {answer.request.url}: {answer.text}")


def _seal(
    repository: Repository,
    branch: str,
    changes: list[dict[str, bytes | None]],
    parents: tuple[str, ...],
    chance: random.Random,
) -> list[str]:
    """Seal changes with odd authors and messages. Returns the ids of the seals."""
    for content in {data for files in changes for data in files.values() if data is not None}:
        repository.put(content)
    seals = [
        {
            "message": chance.choice(MESSAGES),
            "changes": _delta(files),
            "parents": list(parents),
            "author": chance.choice(AUTHORS),
        }
        for files in changes
    ]
    return repository.sign(branch, seals)


def tree_of(repository: Repository, seal: str) -> dict[str, str]:
    """Path → BLAKE3 of each file of a seal, as the relay lists them."""
    entries = repository.get(f"/tree/{seal}", recursive=True)["entries"]
    return {one["path"]: one["blake3"] for one in entries if one["kind"] != "dir"}


def files_of(repository: Repository, seal: str) -> Files:
    return {path: ok_bytes(repository, f"/raw/{seal}/{quote(path)}") for path in tree_of(repository, seal)}


def ok_bytes(repository: Repository, path: str) -> bytes:
    answer = repository.http.get(repository.url + path)
    ok_empty(answer)
    return answer.content


class Checked:
    """Clones a repository and compares the clones with what the relay reports about each seal."""

    def __init__(self, git: GitProgram, base: Path, repository: Repository, url: str) -> None:
        self.git, self.base, self.repository = git, base, repository
        self.address = f"{url}/{repository.body['full_name']}.git"
        self.count = 0

    def clone(self) -> str:
        """Clone the repository and check the clone. Returns its refs and ids as text."""
        self.count += 1
        folder = self.base / f"clone-{self.count}"
        self.git("clone", "-q", "--mirror", self.address, folder)
        said = history(self.git, folder)
        contents = dict(self._contents(folder))
        commits = {
            row[0]: row[2:]
            for row in map(
                str.split, self.git("-C", folder, "log", "--all", "--format=%H %T %P").splitlines()
            )
        }
        commit_of: dict[str, str] = {}
        stack = list(self._heads(folder))
        while stack:
            seal, commit = stack.pop()
            if seal in commit_of:
                require(commit_of[seal] == commit, f"seal {seal} is one commit")
                continue
            commit_of[seal] = commit
            listed = self.git("-C", folder, "ls-tree", "-r", "-z", "--full-tree", commit).split("\0")
            entries = [one.partition("\t") for one in listed if one]
            require(all(head.startswith("100644 blob ") for head, _, _ in entries), "modes are plain")
            shown = {path: contents[head.split()[2]] for head, _, path in entries}
            require(shown == tree_of(self.repository, seal), f"the files of seal {seal}")
            parents = self._parents(seal)
            require(len(parents) == len(commits[commit]), f"the parents of seal {seal}")
            stack += zip(parents, commits[commit], strict=True)
        require(set(commit_of.values()) == set(commits), "each commit is a seal")
        shutil.rmtree(folder)
        return said

    def _heads(self, folder: Path) -> Iterator[tuple[str, str]]:
        lines = self.git("-C", folder, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        refs = dict(line.rsplit(" ", 1) for line in lines)
        listed = [one for one in self.repository.get("/refs", limit=100)["items"] if one["head"]]
        names = {f"refs/{'tags' if one['type'] == 'tag' else 'heads'}/{one['name']}": one for one in listed}
        require(names.keys() == refs.keys(), f"git has the refs {sorted(names.keys() ^ refs.keys())}")
        for name, one in names.items():
            yield one["head"], refs[name]

    def _parents(self, seal: str) -> list[str]:
        made = payload(self.repository, seal)
        merge = made.provenance.merge
        sources = merge.sources if merge is not None and merge.strategy in kernel.LINKED else []
        parents = [*made.parents]
        for source in sources:
            if (
                source not in parents
                and self.repository.http.get(f"{self.repository.url}/seals/{source}").is_success
            ):
                parents.append(source)
        return parents

    def _contents(self, folder: Path) -> Iterator[tuple[str, str]]:
        """Yields (id, BLAKE3 of the content) of each blob of a clone."""
        raw = self.git.try_command("-C", folder, "cat-file", "--batch-all-objects", "--batch").stdout
        at = 0
        while at < len(raw):
            end = raw.index(b"\n", at)
            object_id, kind, size = raw[at:end].split()
            at = end + 1 + int(size) + 1
            if kind == b"blob":
                yield object_id.decode(), blake3(raw[end + 1 : at - 1]).hexdigest()


def play(base: Path, relay: Relay, seed: int, seals: int) -> Counter[str]:
    """Make one random history and check it. Returns how often each kind of step was done. Raises CheckFailed
    if a clone is wrong."""
    git = GitProgram(base / "home")
    owner, other = relay.account(f"owner-{seed}"), relay.account(f"other-{seed}")
    with relay.client(owner, event_hooks={}) as http, relay.client(other, event_hooks={}) as second:
        original = GrowingRepository(seed, create(http, owner, "made", visibility="public"))
        checked = Checked(git, base, original.repository, relay.url)
        for part in (seals // 3, 2 * seals // 3):
            original.grow(part)
            checked.clone()
        forked = Repository(second, other, ok(second.post(f"{original.repository.url}/forks", json={})))
        original.grow(seals)
        said = checked.clone()
        _forget(relay, original.repository)
        require(checked.clone() == said, "the ids are the same after the cache was deleted")
        fork = Checked(git, base, forked, relay.url)
        before = fork.clone()
        grown = GrowingRepository(seed, forked)
        grown.heads["main"] = forked.head() or ""
        grown.files["main"] = files_of(forked, grown.heads["main"])
        grown.grow(3)
        before = fork.clone()
        ok_empty(http.delete(original.repository.url))
        require(fork.clone() == before, "a fork stays when its source is deleted")
        _forget(relay, forked)
        require(fork.clone() == before, "a fork is made again when its source is deleted")
        return original.done


def _forget(relay: Relay, repository: Repository) -> None:
    shutil.rmtree(relay.folder / "git" / f"{repository.id}.git")


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    seals = int(sys.argv[3]) if len(sys.argv) > 3 else 90
    began, failed = time.monotonic(), 0
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="svc-git-") as folder, relay_on(Path(folder) / "relay") as relay:
        for seed in range(first, first + count):
            try:
                total += play(Path(folder) / str(seed), relay, seed, seals)
            except (CheckFailed, AssertionError):
                failed += 1
                say(f"seed {seed}")
                traceback.print_exc(limit=-4)
    say(", ".join(f"{number} {name}" for name, number in total.items()))
    say(f"{count} histories, {failed} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
