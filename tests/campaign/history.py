"""Random histories of several machines with the real client, the real relay and a bad road between them.

A word (see `person`) is given up only when somebody who saw it took it away, or one of its copies in their
folder; every other word must be found at the end, in a branch or in a trash folder. One seed is one history.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.campaign import audit
from tests.campaign.person import Person, all_words, words
from tests.campaign.world import Broken, Machine, Node, Ran, Running

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
    conflicts: int = 0
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
            "conflicts",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures += other.failures


class History:
    """One repository and its machines. `serial` keeps handles apart on one node."""

    def __init__(self, node: Node, base: Path, seed: int, machines: int, serial: int) -> None:
        self.node, self.seed = node, seed
        self.random = random.Random(seed)
        self.figures = Figures(histories=1)
        self.base = base
        self.person = Person(self.random)
        self.alive: dict[bytes, str] = {}
        self.given_up: set[bytes] = set()
        self.written: set[bytes] = set()  # every word that a person saved
        self.trees: dict[str, dict[str, bytes]] = {}
        self.sealed: set[str] = set()
        self.trail: list[str] = []
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

    def here(self, machine: Machine) -> Counter[bytes]:
        found: Counter[bytes] = Counter()
        for data in machine.files().values():
            found += words(data)
        return found

    def give_up(self, before: Counter[bytes], after: Counter[bytes]) -> None:
        self.given_up |= set(before - after)

    def edit(self, machine: Machine) -> None:
        """One thing that a person does to the folder, and which words came and went with it."""
        before = self.here(machine)
        what = self.person.edit(machine)
        after = self.here(machine)
        self.written.update(*map(all_words, machine.files().values()))
        self.give_up(before, after)
        written = set(after) - set(before)
        self.alive |= dict.fromkeys(written, machine.name)
        self.trail.append(f"{machine.name} {what} {self.person.touched} {sorted(map(bytes.decode, written))}")

    # --- commands

    def command(self, machine: Machine) -> tuple[str, ...]:
        roll = self.random.random()
        if roll < 0.42:
            return (
                "push",
                "-m",
                f"seal {self.person.made}",
                *(["--json"] if self.random.random() < 0.5 else []),
            )
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
        if command[0] == "push":
            machine.keep_both()
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
        audit.no_word_twice(machine)
        audit.nothing_strange(machine, self.written)

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
            name = f"during {self.person.made}.txt"
            (machine.folder / name).write_bytes(word := self.person.word())
            self.alive[word] = machine.name
            self.written.add(word)
        return running.wait()

    # --- what must hold

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
                machine.joined("switch", branch, "--merge")
            for _ in range(6):
                before = [machine.files() for machine in self.machines]
                pushed = []
                for machine in self.machines:
                    machine.joined("pull", "--merge")
                    machine.keep_both()
                    done = machine.ok("push", "-m", "rest", "--json").json()
                    pushed.append(done["seal"] or done["sent"])
                    if done["refused"]:
                        raise Broken(f"{machine.name}: {done['refused']}")
                if not any(pushed) and before == [machine.files() for machine in self.machines]:
                    break
            else:
                raise Broken(f"{branch} does not come to rest")
            copy = self.base / f"clone-{branch}"
            self.trees[branch] = audit.converged(self.machines, self.repo, branch, copy)
            self.figures.conflicts += sum(".kept-" in path for path in self.trees[branch])

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
            self.sealed |= audit.chain(self.machines[0], branch, self.trees[branch])
        audit.bounded(self.node)
        if "request failed" in self.node.log.read_text():
            raise Broken("the relay answered 500: " + self.node.log.read_text()[-3000:])


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
