"""Random histories of several machines with the real client, the real relay and a bad road between them.

Every edit writes a word of its own: one character, because lanes merge by characters. A word is given up only
when somebody who saw it took it away; every other word must be found at the end, in a branch or in a trash
folder. One seed is one history.
"""

from __future__ import annotations

import random
import re
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from localstore.core import seal as seals
from localstore.core.encoding import digest, unb64u, unhex
from localstore.core.limits import IGNORE_FILE_BYTES
from localstore.core.paths import TEMPORARY
from localstore.core.tree import Entry, root_digest
from localstore.link import read_repo
from svc.api import connect
from svc.api.session import Sessions
from tests.campaign.world import Broken, Machine, Node, Ran, Running

WORD = re.compile(rb"\xf0[\xa0-\xa8][\x80-\xbf]{2}")
FIRST_WORD = 0x20000
ORDINARY = ["the", "return x", "    pass", "a", "{", "}", "", "é 世 😀", "e\u0301\r", "-" * 60]
NAMES = [
    "a.txt", "b.py", "README.md", "d", "d/x.txt", "d/y.bin", "d/e/z.txt", "c.bin", "Case.txt", "case.txt",
    "naïve ü.txt", "世界/😀.md", "empty", "d/e", "e\u0301.txt", "big.bin", ".gitignore", "-n", "a b", "$(x)",
]  # fmt: skip
MODES = ["plain", "plain", "kill", "kill", "step", "step", "cut", "cut", "relay", "slow", "offline", "repeat"]


@dataclass
class Figures:
    histories: int = 0
    commands: int = 0
    seals: int = 0
    client_kills: int = 0
    relay_kills: int = 0
    cuts: int = 0
    refused: int = 0
    words: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        for name in (
            "histories",
            "commands",
            "seals",
            "client_kills",
            "relay_kills",
            "cuts",
            "refused",
            "words",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures += other.failures


def _temporary(path: str) -> bool:
    """Whether svc makes and removes such a file beside people's own."""
    return TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


def words(data: bytes) -> Counter[bytes]:
    return Counter(WORD.findall(data))


class History:
    """One repository and its machines. `serial` keeps handles apart on one node."""

    def __init__(self, node: Node, base: Path, seed: int, machines: int, serial: int) -> None:
        self.node, self.seed = node, seed
        self.random = random.Random(seed)
        self.figures = Figures(histories=1)
        self.base = base
        self.made = 0
        self.alive: dict[bytes, str] = {}
        self.given_up: set[bytes] = set()
        self.trees: dict[str, dict[str, bytes]] = {}
        self.sealed: set[str] = set()
        self.trail: list[str] = []
        self.touched = ""
        self.owner = f"u{serial}"
        self.repo = f"{self.owner}/play"
        self.branches = ["main"]
        self.machines = [Machine(base, f"m{number}", node) for number in range(machines)]
        self._set_up(serial)

    def _set_up(self, serial: int) -> None:
        first, *others = self.machines
        first.ok("login", "--device-key", "--handle", self.owner)
        first.ok("repo", "create", "play")
        guest = others[-1] if len(others) > 1 else None
        for machine in others:
            if machine is guest:
                machine.ok("login", "--device-key", "--handle", f"g{serial}")
                self.node.rows(
                    "INSERT INTO collaborator SELECT r.id, g.id, 'write', r.created_at "
                    "FROM repo r, account g, account o WHERE r.owner_id = o.id "
                    "AND o.handle = ? AND g.handle = ?",
                    self.owner, f"g{serial}",
                )  # fmt: skip
                continue
            code = first.ok("auth", "device", "add").out.split()[0]
            machine.ok("login", "--device-key", "--handle", self.owner, "--pair", code)
        for machine in self.machines:
            machine.ok("repo", "init", self.repo)

    # --- people

    def word(self) -> bytes:
        self.made += 1
        return chr(FIRST_WORD + self.made).encode()

    def here(self, machine: Machine) -> Counter[bytes]:
        found: Counter[bytes] = Counter()
        for data in machine.files().values():
            found += words(data)
        return found

    def give_up(self, before: Counter[bytes], after: Counter[bytes]) -> None:
        self.given_up |= set(before) - set(after)

    def edit(self, machine: Machine) -> None:
        """One thing that a person does to the folder."""
        before = self.here(machine)
        what = self.random.choice(
            ["write"] * 8 + ["bytes"] * 3 + ["delete", "rename", "empty", "cut", "folder", "copy", "huge"]
        )
        try:
            getattr(self, f"_{what}")(machine)
        except OSError:
            pass  # a file where a directory is needed, and the like: a person is told so by the shell
        finally:
            self._keep_rules_short(machine)
            after = self.here(machine)
            self.give_up(before, after)
            written = set(after) - set(before)
            self.alive |= dict.fromkeys(written, machine.name)
            self.trail.append(f"{machine.name} {what} {self.touched} {sorted(map(bytes.decode, written))}")

    def _keep_rules_short(self, machine: Machine) -> None:
        """An ignore file over its limit stops every command until somebody shortens it."""
        rules = machine.folder / ".gitignore"
        if rules.is_file() and rules.stat().st_size > IGNORE_FILE_BYTES // 4:
            rules.unlink()

    def _path(self, machine: Machine, existing: bool = True) -> Path:
        known = sorted(path for path in machine.files() if not _temporary(path))  # nobody opens those
        old = existing and known and self.random.random() < 0.8
        self.touched = self.random.choice(known if old else NAMES)
        return machine.folder / self.touched

    def _write(self, machine: Machine) -> None:
        path = self._path(machine)
        old = path.read_bytes() if path.exists() else b""
        lines = old.split(b"\n")
        if b"\0" in old:
            lines = [old]
        at = self.random.randrange(len(lines) + 1)
        new = [self.random.choice(ORDINARY).encode() for _ in range(self.random.randrange(3))]
        new.append(self.random.choice(ORDINARY).encode() + b" " + self.word() + b" ")
        self._save(path, b"\n".join(lines[:at] + new + lines[at:]))

    def _cut(self, machine: Machine) -> None:
        path = self._path(machine)
        lines = path.read_bytes().split(b"\n")
        at = self.random.randrange(len(lines))
        self._save(path, b"\n".join(lines[:at] + lines[at + self.random.randrange(1, 4) :]))

    def _bytes(self, machine: Machine) -> None:
        path = self._path(machine)
        size = self.random.choice([0, 1, 300, 70_000])
        self._save(path, b"\0" + self.word() + b" " + self._noise(size))

    def _noise(self, size: int) -> bytes:
        """Random bytes without any word."""
        return self.random.randbytes(size).replace(b"\xf0", b"\xff")

    def _huge(self, machine: Machine) -> None:
        lines = [b"line %d of many" % self.random.randrange(50) for _ in range(4000)]
        lines[self.random.randrange(4000)] = self.word()
        if self.random.random() < 0.4:
            lines.append(b"\0" + self._noise(1_500_000))
        self._save(self._path(machine), b"\n".join(lines))

    def _empty(self, machine: Machine) -> None:
        self._save(self._path(machine), b"")

    def _delete(self, machine: Machine) -> None:
        self._path(machine).unlink()

    def _rename(self, machine: Machine) -> None:
        old, new = self._path(machine), self._path(machine, existing=False)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)

    def _copy(self, machine: Machine) -> None:
        old, new = self._path(machine), self._path(machine, existing=False)
        self._save(new, old.read_bytes())

    def _folder(self, machine: Machine) -> None:
        """A file becomes a directory, or the other way round."""
        self.touched = self.random.choice(["d", "d/e", "a.txt", "世界", "empty"])
        path = machine.folder / self.touched
        if path.is_dir():
            shutil.rmtree(path)
            path.write_bytes(b"was a directory " + self.word() + b"\n")
        else:
            path.unlink(missing_ok=True)
            path.mkdir(parents=True)
            (path / "in.txt").write_bytes(b"below " + self.word() + b"\n")

    def _save(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.random.random() < 0.5:  # as editors do: a new file renamed over the old one
            fresh = path.with_name(path.name + "~")
            fresh.write_bytes(data)
            try:
                fresh.rename(path)
            finally:
                fresh.unlink(missing_ok=True)
        else:
            path.write_bytes(data)

    # --- commands

    def command(self, machine: Machine) -> tuple[str, ...]:
        roll = self.random.random()
        if roll < 0.42:
            return ("push", "-m", f"seal {self.made}", *(["--json"] if self.random.random() < 0.5 else []))
        if roll < 0.70:
            return ("pull", "--merge")
        if roll < 0.80:
            return ("pull",)
        if roll < 0.84:
            return ("pull", "--force")
        if roll < 0.88:
            return ("repo", "status")
        if roll < 0.92:
            return ("restore", *self.random.sample(["a.txt", "d", "b.py", "c.bin"], 2))
        if roll < 0.94 and len(self.branches) < 3:
            return ("repo", "branch", f"side{len(self.branches)}")
        if len(self.branches) > 1:
            return (
                "switch",
                self.random.choice(self.branches),
                *self.random.choice([[], ["--merge"], ["--force"]]),
            )
        return ("push", "-m", "again")

    def act(self, machine: Machine) -> None:
        command, how = self.command(machine), self.random.choice(MODES)
        self.trail.append(f"{machine.name} {how}: svc {' '.join(command)}")
        before = self.here(machine)
        done = self.under(machine, command, how)
        self.trail[-1] += f" → {done.code} {(done.err or done.out).strip()[:160]}"
        self.figures.commands += 1
        self.figures.refused += done.code == 1
        after = self.here(machine)
        kept = Counter(after)
        for data in machine.trash():
            kept += words(data)
        if command[0] in ("restore", "repo"):
            lost = set(before) - set(kept)
            if lost:
                raise Broken(f"{machine.name}: {command[0]} lost {sorted(lost)[:5]}")
            self.give_up(before, after)
        if command[0] == "repo" and command[1] == "branch" and done.code == 0 and done.err != "not run":
            self.branches.append(command[2])
        self._no_word_twice(machine)

    def under(self, machine: Machine, command: tuple[str, ...], how: str) -> Ran:
        """Run a command in this kind of weather."""
        node = self.node
        try:
            if how == "kill":
                running = machine.begin(*command)
                self._after(self.random.random() ** 2 * 0.6, running)
                running.kill()
                return self._counted(running.wait())
            if how == "step":
                return self._counted(machine.run(*command, die_at=int(10 ** self.random.uniform(0, 4))))
            if how == "cut":
                self.figures.cuts += 1
                way = self.random.choice(["cut_up", "cut_down"])
                node.turn(reset=self.random.random() < 0.5, **{way: int(10 ** self.random.uniform(1.5, 4.7))})
                return machine.run(*command)
            if how == "relay":
                return self._relay_dies(machine, command)
            if how == "slow":
                node.turn(delay=0.01)
                return self._together(machine, command)
            if how == "offline":
                node.turn(closed=True)
                return machine.run(*command) if self.random.random() < 0.3 else Ran(command, 0, "", "not run")
            node.turn(repeat=how == "repeat")
            return machine.run(*command)
        finally:
            node.turn()

    def _after(self, seconds: float, running: Running) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not running.over():
            time.sleep(0.002)

    def _counted(self, done: Ran) -> Ran:
        self.figures.client_kills += done.code < 0
        return done

    def _relay_dies(self, machine: Machine, command: tuple[str, ...]) -> Ran:
        running = machine.begin(*command)
        self._after(self.random.random() ** 2 * 0.6, running)
        self.node.kill()
        self.figures.relay_kills += 1
        if self.random.random() < 0.5:
            done = running.wait()
            self.node.start()
            return done
        self.node.start()
        return running.wait()

    def _together(self, machine: Machine, command: tuple[str, ...]) -> Ran:
        """Another machine, or another process in the same folder, works at the same time; somebody saves."""
        running = machine.begin(*command)
        other = self.random.choice(self.machines)
        if other is not machine:
            self.trail[-1] += f" (beside {other.name} push)"
            other.run("push", "-m", "beside")
        elif self.random.random() < 0.5:
            name = f"during {self.made}.txt"
            (machine.folder / name).write_bytes(word := self.word())
            self.alive[word] = machine.name
        return running.wait()

    # --- what must hold

    def _no_word_twice(self, machine: Machine) -> None:
        for path, data in machine.files().items():
            double = [word for word, times in words(data).items() if times > 1]
            if double:
                raise Broken(f"{machine.name}: {path} holds {double[:3]} twice")

    def play(self, acts: int) -> None:
        for _ in range(acts):
            machine = self.random.choice(self.machines)
            for _ in range(self.random.randrange(4)):
                self.edit(machine)
            self.act(machine)
        self.audit()

    def rest(self) -> None:
        """Fine weather: everybody goes to each branch and brings it up to date."""
        for branch in self.branches:
            for machine in self.machines:
                machine.ok("switch", branch, "--merge")
            for _ in range(6):
                before = [machine.files() for machine in self.machines]
                pushed = []
                for machine in self.machines:
                    machine.ok("pull", "--merge")
                    done = machine.ok("push", "-m", "rest", "--json").json()
                    pushed.append(done["seal"] or done["sent"])
                    if done["refused"]:
                        raise Broken(f"{machine.name}: {done['refused']}")
                if not any(pushed) and before == [machine.files() for machine in self.machines]:
                    break
            else:
                raise Broken(f"{branch} does not come to rest")
            self._converged(branch)

    def _converged(self, branch: str) -> None:
        first = self.machines[0]
        copy = self.base / f"clone-{branch}"
        first.ok("repo", "clone", self.repo, str(copy), "-b", branch, where=self.base)
        clone = Machine.__new__(Machine)
        clone.folder = copy
        expected = clone.files()
        self.trees[branch] = expected
        for machine in self.machines:
            found = machine.files()
            if found != expected:
                wrong = sorted(path for path in {*found, *expected} if found.get(path) != expected.get(path))
                raise Broken(f"{branch}: {machine.name} differs from the clone in {wrong[:5]}")
            strange = list(filter(_temporary, found))
            if strange:
                raise Broken(f"{machine.name} still has {strange}")
            links = sorted(path.name for path in (machine.folder / ".svc").iterdir())
            if links != ["repo.json", "state.json"]:
                raise Broken(f"{machine.name}: .svc holds {links}")

    def audit(self) -> None:
        self.node.turn()
        self.rest()
        found: Counter[bytes] = Counter()
        for tree in self.trees.values():
            for data in tree.values():
                found += words(data)
        for machine in self.machines:
            for data in machine.trash():
                found += words(data)
        lost = set(self.alive) - self.given_up - set(found)
        if lost:
            raise Broken(f"lost: {sorted((word, self.alive[word]) for word in lost)[:8]}")
        self.figures.words = len(self.alive)
        for branch in self.branches:
            self._chain(branch)
        self._bounded()
        if "request failed" in self.node.log.read_text():
            raise Broken("the relay answered 500: " + self.node.log.read_text()[-3000:])

    def _chain(self, branch: str) -> None:
        """Every seal verifies, names its parent, and has the tree that it says."""
        machine = self.machines[0]
        repo_id = read_repo(machine.folder).repo_id
        api = connect(self.node.address, Sessions(machine.home))
        try:
            wanted = api.ref.get(repo_id, "branch", branch).head
            tip = wanted
            while wanted is not None:
                one = api.history.seal(repo_id, wanted)
                raw = unb64u(one.payload)
                payload = seals.decode(raw)
                seals.verify(raw, unb64u(one.signature.value, 64), unb64u(one.key.public_key, 32))
                if one.id != wanted or seals.seal_id(raw) != wanted or payload.repo_id != repo_id:
                    raise Broken(f"seal {wanted} is not what it says")
                tree = api.history.tree(repo_id, wanted, recursive=True)
                entries = {
                    one.path: Entry(one.kind, unhex(one.blake3), one.size)
                    for one in tree.entries
                    if one.kind != "dir"
                }
                assert tree.tree_key is not None
                if root_digest(entries, unb64u(tree.tree_key, 32)).hex() != payload.content_digest:
                    raise Broken(f"the tree of seal {wanted} is not the sealed one")
                cloned = {path: digest(data) for path, data in self.trees[branch].items()}
                if wanted == tip and cloned != {path: entry.digest for path, entry in entries.items()}:
                    raise Broken(f"the clone of {branch} is not the tree of {wanted}")
                wanted = payload.parents[0] if payload.parents else None
                self.sealed.add(one.id)
        finally:
            api.close()

    def _bounded(self) -> None:
        """At most two ends of older epochs stay for each lane."""
        counts = self.node.rows("SELECT count(*) FROM lane_final GROUP BY branch_id, gen")
        if any(count > 2 for (count,) in counts):
            raise Broken("more ends of older epochs are kept than two")


def play(node: Node, base: Path, seed: int, machines: int, acts: int, serial: int) -> Figures:
    """One history; a failure is in the figures, with the trail that led to it."""
    folder = base / f"history-{serial}"
    folder.mkdir()
    history = None
    try:
        history = History(node, folder, seed, machines, serial)
        history.play(acts)
    except AssertionError as error:
        trail = "\n    ".join(history.trail if history else [])
        figures = history.figures if history else Figures()
        figures.failures.append(f"seed {seed}, in {folder}:\n    {trail}\n  {error}")
        return figures
    history.figures.seals = len(history.sealed)
    shutil.rmtree(folder)
    return history.figures
