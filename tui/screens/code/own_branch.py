"""Takes edits to a branch of their own, where the branch of the folder takes none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from tui.asked import DONE
from tui.screens.base import Base, PromptQuestion

ASKS = "name of the branch"
SWITCH_OR_LEAVE = (("enter y", "switch and edit"), ("esc n", "leave"))
YES = ("", "y")  # what the prompt answers at enter and at y


def suggest_name(account: str, path: str) -> str:
    """Returns a name for a branch with edits of the file `path`."""
    stem = PurePosixPath(path).stem.strip(".").replace(" ", "-") or "edits"
    return f"{account}/{stem}" if account else stem


def ask_for_branch(screen: Base, branch: str, path: str, why: str, then: Callable[[str], None]) -> None:
    """Let the user name a new branch for the edits of `path`. Make it from `branch`, switch the linked folder
    to it with what the folder contains, and call `then` with its name. `why`: why `branch` takes no edits, ""
    if the screen says so already."""
    before = f"{why}; " if why else ""

    def make(typed: str) -> None:
        name = typed.strip()
        if name:
            _make(screen, branch, name, then)
        else:
            screen.say(f"{before}a new branch needs a name", "warn")

    screen.say(f"{before}a branch of their own takes your edits, and {_folder(screen)} goes to it:", "warn")
    screen.ask(
        ASKS,
        make,
        value=suggest_name(screen.svc.client.account, path),
        enter="make it and edit there",
        on_leave=lambda: screen.say(why or "nothing was done", "warn" if why else "dim"),
        label="new branch",
    )


def _folder(screen: Base) -> str:
    folder = screen.svc.place.folder
    return f"your folder {folder.name}" if folder is not None else "the folder"


def _make(screen: Base, branch: str, name: str, then: Callable[[str], None]) -> None:
    undone = f"{name} was not made"

    def switch() -> None:
        _run(screen, ["switch", name, "--merge"], undone, lambda: then(name))

    screen.say(f"◐ making {name}", "dim")
    _run(screen, ["repo", "branch", name, "--from", branch], undone, switch)


def _run(screen: Base, words: list[str], undone: str, go_on: Callable[[], None]) -> None:
    """Run a command of svc, and then call `go_on`. If it fails, say why. `undone`: what to say if it
    prints no reason."""

    def take_end(output: str, state: Sequence[str]) -> None:
        if not screen.is_attached:
            return
        if state[0] == DONE:
            go_on()
            return
        lines = [line.strip() for line in output.splitlines() if line.strip()]
        screen.say(lines[-1].removeprefix("svc: ") if lines else undone, "bad")

    screen.svc.run_beside(words, take_end)


def offer_switch(screen: Base, branch: str, target: str, path: str, then: Callable[[str], None]) -> None:
    """Offer to switch the linked folder from `branch` to the branch `target`, in order to edit `path` there.
    After that, call `then` with `target`."""

    def decide(answer: str) -> None:
        if answer.lower() not in YES:
            leave()
            return
        screen.say(f"◐ switching {_folder(screen)} to {target}", "dim")
        _run(screen, ["switch", target], f"{_folder(screen)} was not switched", lambda: then(target))

    def leave() -> None:
        screen.say(f"{_folder(screen)} stays on {branch}, and nothing was edited", "dim")

    question = (
        f"A text is edited on the branch of its folder, and {_folder(screen)} is on {branch}. "
        f"Switch it to {target} and edit there?"
    )
    screen.ask(
        "",
        decide,
        on_leave=leave,
        answers=SWITCH_OR_LEAVE,
        question=PromptQuestion(question, f"edit {path} on {target}"),
    )
