"""Completion: what stands at the cursor, from the table and from this machine alone, in real shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.folder import link
from localstore.home import Home
from svc.cmd.frame.complete import answer
from svc.cmd.frame.table import children
from svc.flows.place.known_refs import add, drop, recall
from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Svc, clean_environment

REPO_ID = "../../../outside"  # ids come from servers


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A linked folder of a machine that knows two branches and a tag; its server does not exist."""
    root = tmp_path / "copy"
    (root / "src").mkdir(parents=True)
    server = "http://127.0.0.1:9"
    link.write_repo(
        root, link.RepoLink(server=server, repo_id=REPO_ID, repo="alice/app", branch="main", class_="x")
    )
    tree = dict.fromkeys(["README.md", "src/a.py", "src/with space.py", "src/\x1b[2J"], "0" * 64)
    link.write_state(root, link.SealedState(last_seal="1" * 64, tree=tree))
    add(Home(tmp_path / "home"), REPO_ID, "branch", ["main", "parser", "pa\x1brty"])
    add(Home(tmp_path / "home"), REPO_ID, "tag", ["v1.0"])
    return root


def offered(folder: Path, line: str) -> list[str]:
    home = str(folder.parent / "home")
    lines = answer(line.split(" "), {"SVC_HOME": home}, folder).splitlines()
    return [text.partition("\t")[0] for text in lines]


def test_commands_options_and_values(folder: Path) -> None:
    assert offered(folder, "") == list(children(""))
    assert offered(folder, "pu") == ["push", "pull"]
    assert offered(folder, "repo tag ") == ["create", "list", "delete"]
    assert offered(folder, "help repo tag cr") == ["create"]
    assert offered(folder, "--server x -R a/b --yes repo vi") == ["view", "visibility"]
    assert offered(folder, "repo visibility ") == ["public", "private"]
    assert offered(folder, "repo create x --kind d") == ["dataset"]
    assert offered(folder, "push --no") == ["--no-delete"]
    assert "--help" in offered(folder, "repo -")
    assert offered(folder, "push -m ") == [], "a message is not known beforehand"
    assert offered(folder, "nonsense ") == []


def test_refs_and_files_of_the_folder(folder: Path) -> None:
    assert offered(folder, "switch ") == ["main", "parser", "v1.0"]
    assert offered(folder, "repo tag delete ") == ["v1.0"]
    assert offered(folder, "repo clone alice/app -b p") == ["parser"]
    assert offered(folder, "diff --base ") == ["main", "parser", "v1.0"]
    assert offered(folder, "restore src/") == ["src/a.py", "src/with space.py"]
    assert offered(folder / "src", "blame ") == ["a.py", "with space.py"]
    assert offered(folder, "log v") == ["v1.0"]
    assert offered(folder, "grep words v") == ["v1.0"]
    assert offered(folder, "grep words s") == ["src/a.py", "src/with space.py"]
    assert offered(folder, "grep words v1.0 src/a") == ["src/a.py"]
    assert offered(folder, "grep ") == [], "a pattern is not known beforehand"
    assert offered(folder, "repo view ") == ["alice/app"]
    assert offered(folder.parent, "switch ") == [], "an unlinked folder knows nothing"


def test_damage_is_silent(folder: Path) -> None:
    (folder / ".svc" / "state.json").write_text("{")
    assert offered(folder, "restore ") == []
    (folder / ".svc" / "repo.json").write_text("\0")
    assert offered(folder, "switch ") == []
    for file in (folder.parent / "home" / "refs").iterdir():
        file.write_bytes(b"\xff")
    assert recall(Home(folder.parent / "home"), REPO_ID) == {}


def test_what_is_known_of_refs_follows_the_commands(alice: Svc, tmp_path: Path) -> None:
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", repo).code == 0
    Path("a").write_text("a")
    assert alice("push", "-m", "A").code == 0
    assert alice("repo", "branch", "parser").code == 0
    assert alice("repo", "tag", "create", "v1").code == 0
    assert offered(Path.cwd(), "diff --head ") == ["main", "parser", "v1"]
    home = Home(tmp_path / "home")
    here = link.read_repo(Path.cwd()).repo_id
    add(home, here, "branch", ["gone"])
    drop(home, here, "parser")
    assert alice("repo", "branch").code == 0
    assert sorted(offered(Path.cwd(), "switch ")) == ["main", "parser", "v1"]
    assert alice("repo", "branch-delete", "parser").code == 0
    assert alice("repo", "tag", "delete", "v1").code == 0
    assert offered(Path.cwd(), "diff --head ") == ["main"]


SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
LOAD = {
    "bash": 'eval "$(svc completions bash)"',
    "zsh": "autoload -Uz compinit; compinit -u -D; source =(svc completions zsh)",
    "fish": "svc completions fish | source",
}


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "svc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m svc "$@"\n')
    (folder / "svc").chmod(0o755)
    yield folder


@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_in_a_real_shell(shell: str, folder: Path, tools: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    (folder / "notes.txt").write_text("")
    environment = clean_environment(
        SVC_HOME=str(folder.parent / "home"),
        HOME=str(folder.parent),
        PATH=f"{tools}:{os.environ['PATH']}",
        TERM="dumb",
        PS1="> ",
        LC_ALL="C.UTF-8",
    )
    with Typist(SHELLS[shell], environment, folder) as typist:
        typist.type(LOAD[shell] + "; echo lo''aded\r", "loaded")
        typist.type("svc swi\t", "svc switch ")
        typist.type("pars\t", "parser")
        typist.type("\x15svc restore src/wi\t", "src/with\\ space.py")
        typist.type("\x15svc push -m not\t", "notes.txt")
        typist.type("\x15svc completions powers\t\r", "Register-ArgumentCompleter")


def readable(fd: int, seconds: float) -> bool:
    """Whether something can be read within so many seconds; of whatever number the descriptor is."""
    waiting = select.poll()
    waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


class Typist:
    """Somebody at a shell's terminal."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: Path) -> None:
        self._process, self._near = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)

    def __enter__(self) -> Typist:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._near)

    def type(self, keys: str, wanted: str) -> None:
        """Type, and read on until `wanted` has appeared."""
        os.write(self._near, keys.encode())
        seen, until = b"", time.monotonic() + PATIENCE
        while wanted.encode() not in seen and time.monotonic() < until:
            if readable(self._near, 1):
                seen += os.read(self._near, 65536)
        assert wanted.encode() in seen, seen.decode("utf-8", "replace")


def test_completion_loads_no_network() -> None:
    script = "import sys; sys.argv = ['svc', 'switch', '']\n"
    script += "from svc.__main__ import answer; answer(sys.argv[1:]); sys.stderr.write(','.join(sys.modules))"
    environment = clean_environment(SVC_COMPLETE="1", SVC_HOME="/nonexistent")
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
    )
    assert not {"httpx", "httpcore", "rich"} & set(ended.stderr.split(","))
