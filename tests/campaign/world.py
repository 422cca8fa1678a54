"""A real relay behind a bad road, and machines whose every command is a process that can be killed."""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import re
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import httpx
import msgspec

from tests import buckets, databases
from tests.campaign.proxy import Weather
from tests.patience import PATIENCE
from tests.svc import forks
from tests.svc.conftest import ROOT, clean_environment


class Broken(AssertionError):
    """Something that must never happen did."""


@dataclass
class Ran:
    """A command's end. `code` is negative if a signal ended it."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return msgspec.json.decode(self.out)


class Node:
    """The relay and the road to it. `address` stays the same however often the relay dies."""

    def __init__(self, base: Path, address: str | None = None, forks: bool = False) -> None:
        """`address`: somebody else's road leads to the relay, and that is its public address. `forks`: the
        relay is a fork that has its code loaded already, so that it can die often."""
        self.base, self.forks = base, forks
        self.control = base / "weather.json"
        self.serial = 0
        self.port = 0
        data = base / "data"
        self.stores = {**databases.variables(data), **buckets.variables(data)}
        self.url = self.stores.get("DATABASE_URL") or f"sqlite:///{data / 'relay.db'}"
        self.relay: subprocess.Popen[str] | Fork | None = None
        self.proxy: subprocess.Popen[str] | None = None
        self.turn()
        self.address = address or self._build_road()
        self.start()

    def _build_road(self) -> str:
        self.proxy = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.proxy", str(self.control)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert self.proxy.stdout is not None
        return f"http://127.0.0.1:{int(self.proxy.stdout.readline())}"

    @property
    def log(self) -> Path:
        return self.base / "relay.log"

    def turn(self, **changes: Any) -> None:
        """Change the weather; without arguments it is fine again."""
        self.serial += 1
        weather = Weather(upstream=self.port, serial=self.serial, **changes)
        fresh = self.control.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(weather))
        fresh.replace(self.control)

    def start(self, preexec: Any = None) -> None:
        environment = clean_environment(TR_PUBLIC_URL=self.address, TR_RATE_LIMITS="false", **self.stores)
        words = ["serve", "--dev", "--port", "0", "--data", str(self.base / "data")]
        with self.log.open("a") as log:
            self.relay = (
                Fork(words, log, environment)
                if self.forks
                else subprocess.Popen(
                    [sys.executable, "-m", "relay", *words],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    cwd=ROOT,
                    env=environment,
                    start_new_session=True,
                    preexec_fn=preexec,
                )
            )
        assert self.relay.stdout is not None
        line = self.relay.stdout.readline()
        if "listening on " not in line:
            raise Broken("the relay did not start:\n" + self.log.read_text()[-3000:])
        self.port = int(line.rsplit(":", 1)[1])
        self.turn()

    def kill(self) -> None:
        assert self.relay is not None
        if self.relay.poll() is None:
            os.killpg(self.relay.pid, signal.SIGKILL)
        self.relay.wait(PATIENCE)

    def close(self) -> None:
        for process in (self.relay, self.proxy):
            if process is not None and process.poll() is None:
                process.terminate()
        for process in (self.relay, self.proxy):
            if process is not None:
                process.wait(PATIENCE)
                if process.stdout is not None:
                    process.stdout.close()

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Read, or write, the relay's database from outside."""
        return databases.rows(self.url, statement, *values)


class Fork:
    """A relay in a fork of this process, with a session of its own; used like a Popen."""

    def __init__(self, words: list[str], log: IO[str], environment: dict[str, str]) -> None:
        import relay.run.cli
        import relay.run.server

        out, into = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                os.dup2(into, 1)
                os.dup2(log.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.closerange(3, 1024)
                sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
                os.environ.clear()
                os.environ.update(environment)
                os.chdir(ROOT)
                code = relay.run.cli.main(words)
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            finally:
                os._exit(70)
        os.close(into)
        self.stdout = os.fdopen(out)

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, seconds: float) -> int:
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                raise Broken("the relay does not end")
            time.sleep(0.01)
        assert self.code is not None
        return self.code

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)


class Machine:
    """One device: its own home and folder. A command runs in a fork that has svc loaded already."""

    def __init__(self, base: Path, name: str, node: Node) -> None:
        self.name, self.node = name, node
        self.home = base / name / "home"
        self.folder = base / name / "work"
        self.output = base / name
        self.folder.mkdir(parents=True)
        self.environment: dict[str, str] = {}

    def begin(
        self, *words: str, die_at: int | None = None, where: Path | None = None, before: Any = None
    ) -> Running:
        """Start a command. `die_at` kills it at that call of a function of ours or of the system."""
        out, err = (self.output / "out").open("w+"), (self.output / "err").open("w+")
        if die_at is None and before is None:
            return self._begin_small(words, out, err, where or self.folder)
        _load()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._child(words, out, err, die_at, where or self.folder, before)
        return Running(pid, words, out, err)

    def _begin_small(self, words: tuple[str, ...], out: IO[str], err: IO[str], where: Path) -> Running:
        """In a fork of a process that has loaded svc alone: a fork of this one costs 30 ms more."""
        environment = clean_environment(
            SVC_HOME=str(self.home), HOME=str(self.output), SVC_SERVER=self.node.address
        )
        files = [os.open(os.devnull, os.O_RDONLY), out.fileno(), err.fileno(), os.open(where, os.O_RDONLY)]
        try:
            line = forks.ask(forks.forking(), words, environment | self.environment, files)
        finally:
            os.close(files[0])
            os.close(files[3])
        told = line.makefile("rb")
        line.close()
        return Running(int(told.readline()), words, out, err, told)

    def run(self, *words: str, **how: Any) -> Ran:
        return self.begin(*words, **how).wait()

    def ok(self, *words: str, **how: Any) -> Ran:
        """What a command did, whose exit code is 0."""
        done = self.run(*words, **how)
        if done.code:
            raise Broken(f"{self.name}: svc {' '.join(words)} ended with {done.code}: {done.err}")
        return done

    def joined(self, *words: str, **how: Any) -> Ran:
        """What a pull, merge or switch did whose edits may be in conflict: its exit code is 1 if it has made
        conflicts, 0 if not, and there is no error."""
        done = self.run(*words, **how)
        conflicts = re.search(r"(?m)^conflict in ", done.err) is not None
        if done.code != conflicts or re.search(r"(?m)^svc: ", done.err):
            raise Broken(f"{self.name}: svc {' '.join(words)} ended with {done.code}: {done.err}")
        return done

    def conflicting(self, *words: str, **how: Any) -> Ran:
        """What a pull, merge or switch did that leaves conflicts, and exits 1 for them."""
        done = self.joined(*words, **how)
        if done.code == 0:
            raise Broken(f"{self.name}: svc {' '.join(words)} made no conflict: {done.err}")
        return done

    def keep_both(self, where: Path | None = None) -> None:
        """End the conflicts of the folder by giving each copy a name of its own."""
        for path in sorted((where or self.folder).rglob("*.sync-conflict-*"), reverse=True):
            if path.is_file() or path.is_dir():
                path.rename(path.with_name(path.name.replace(".sync-conflict-", ".kept-")))

    def files(self) -> dict[str, bytes]:
        """All files of the folder but the link."""
        found = {}
        for path in self.folder.rglob("*"):
            relative = path.relative_to(self.folder)
            if relative.parts[0] != ".svc" and path.is_file() and not path.is_symlink():
                found[relative.as_posix()] = path.read_bytes()
        return found

    def trash(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.home / "trash").rglob("*") if path.is_file()]

    def _child(
        self, words: tuple[str, ...], out: IO[str], err: IO[str], die_at: int | None, where: Path, before: Any
    ) -> None:
        code = 70
        try:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
            settings = clean_environment(
                SVC_HOME=str(self.home), HOME=str(self.output), SVC_SERVER=self.node.address
            )
            os.environ.clear()
            os.environ.update(settings | self.environment)
            os.chdir(where)
            for handled in (signal.SIGINT, signal.SIGTERM):
                signal.signal(
                    handled, signal.default_int_handler if handled == signal.SIGINT else signal.SIG_DFL
                )
            from svc.__main__ import COLLECTED_AFTER
            from svc.cmd.frame.app import run

            gc.set_threshold(COLLECTED_AFTER)
            if before is not None:
                before()
            if die_at is not None:
                _die_at(die_at)
            code = run(list(words))
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:
            import traceback

            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)


@cache
def _load() -> None:
    """Import once what commands import when they run, so that the forks need not."""
    import svc.cmd

    for package in (svc, svc.cmd):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    httpx.Client().close()


def _die_at(number: int) -> None:
    """Kill this process at the `number`-th call that localstore makes, Python's or the system's."""
    left = number

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal left
        if event in ("call", "c_call") and "/localstore/" in frame.f_code.co_filename:
            name = frame.f_code.co_filename
            if name.endswith(
                ("files.py", "writer.py", "db.py", "device.py", "send.py", "objects.py", "link.py")
            ):
                left -= 1
                if left <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


class Running:
    def __init__(
        self, pid: int, words: tuple[str, ...], out: IO[str], err: IO[str], told: IO[bytes] | None = None
    ) -> None:
        """`told`: where the exit code is said of what is not a child of this process."""
        self.pid, self.words, self.out, self.err = pid, words, out, err
        self.told = told
        self.code: int | None = None

    def over(self, patience: float = 0) -> bool:
        """Whether it has ended, or does so within so many seconds, if this is told to us."""
        if self.code is None and self.told is not None:
            if select.select([self.told], [], [], patience)[0]:
                self.code = int(self.told.readline())
                self.told.close()
        elif self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def kill(self) -> None:
        if not self.over():
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> None:
        """Return when it has ended; nobody reads what it said."""
        while not self.over():
            time.sleep(0.001)

    def wait(self, seconds: float = PATIENCE) -> Ran:
        end = time.monotonic() + seconds
        pause = 0.002
        while not self.over(max(end - time.monotonic(), 0)):
            if time.monotonic() > end:
                self.kill()
                raise Broken(f"svc {' '.join(self.words)} hangs")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.05)
        self.out.seek(0)
        self.err.seek(0)
        assert self.code is not None
        done = Ran(self.words, self.code, self.out.read(), self.err.read())
        self.out.close()
        self.err.close()
        check(done)
        return done


def check(done: Ran) -> None:
    """No traceback, no surprise, an exit code of the table."""
    said = done.out + done.err
    for never in ("Traceback", "something broke inside", "Exception ignored", "PanicException"):
        if never in said:
            raise Broken(f"svc {' '.join(done.words)}: {said[-3000:]}")
    if done.code not in (0, 1, 2, 4, 8, 130) and done.code != -signal.SIGKILL:
        raise Broken(f"svc {' '.join(done.words)} ended with {done.code}: {said[-2000:]}")
