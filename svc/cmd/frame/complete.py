"""Completes words in the shell: commands, options, and facts about the folder that this machine knows. Sends
no request.

The scripts of `svc completions` call `svc` with SVC_COMPLETE set and the words up to the cursor. The answer
has one candidate in each line, with its meaning after a tab. An empty answer means that the shell completes
file names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from localstore.core.errors import SvcError
from localstore.core.paths import terminal_safe
from svc.cmd.frame.table import COMMANDS, children

EITHER = frozenset({"branch", "tag"})
REFS = {  # parameters that name a branch or tag, and which
    **dict.fromkeys(("ref", "base", "head", "restore source"), EITHER),
    **dict.fromkeys(("branch", "default_branch", "repo branch-delete name"), frozenset({"branch"})),
    "repo tag delete name": frozenset({"tag"}),
    **dict.fromkeys(
        (
            "log words",
            "diff words",
            "show seal",
            "grep seal",
            "revert seal",
            "switch branch",
            "repo clone branch",
            "repo tag create branch",
        ),
        EITHER,
    ),
}
NUMBERS = frozenset({"number"})  # parameters that take the number of an issue or proposal
LABELS = frozenset({"label", "labels", "add_label", "remove_label"})
LABEL_COMMANDS = frozenset({"label edit name", "label delete name"})
WORDS = {"repo visibility words": ("public", "private")}  # parameters that take one of few words
TRACKED = frozenset(
    {"restore paths", "blame path", "log path", "log words", "diff words", "grep seal", "grep paths"}
)
PATHS_MAX = 500


def answer(words: list[str], environment: Mapping[str, str], folder: Path) -> str:
    """Return the completions of `words`, one in each line. The cursor is at the last word."""
    typed = words[-1] if words else ""
    try:
        candidates = [
            candidate
            for candidate in _candidates(words[:-1], typed, environment, folder)
            if candidate[0].startswith(typed)
        ]
    except (SvcError, OSError):
        return ""  # nobody can read a message in the middle of a line
    return "".join(f"{name}\t{meaning}\n" for name, meaning in dict(candidates).items())


def _candidates(
    before: list[str], typed: str, environment: Mapping[str, str], folder: Path
) -> Iterator[tuple[str, str]]:
    from svc.cmd.frame.command import Group, build

    if before[:1] == ["help"]:
        before = before[1:]
    path, waiting, argument_count = _walk(before)
    params: list[Any] = (build(path) if path in COMMANDS else Group(path)).params
    if waiting is not None:
        chosen = [param for param in params if waiting in param.opts]
    elif typed.startswith("-"):
        yield from ((text, param.help or "") for param in params for text in _long_spellings(param))
        yield "--help", "Show this message and exit"
        return
    elif path not in COMMANDS and not argument_count:
        yield from children(path).items()
        return
    elif path not in COMMANDS:
        return
    else:
        arguments = [param for param in params if param.param_type_name == "argument"]
        several = bool(arguments) and arguments[-1].nargs == -1
        chosen = arguments[min(argument_count, len(arguments) - 1) if several else argument_count :][:1]
    for param in chosen:
        yield from _values(path, param, environment, folder)


def _walk(before: list[str]) -> tuple[str, str | None, int]:
    """Parse the words before the cursor. Returns the path of the command or group, the option that still
    needs its value (or None), and the number of arguments."""
    from svc.cmd.frame.command import Group, build

    path, waiting, argument_count = "", None, 0
    params: list[Any] = Group("").params
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            takes = any(
                word in param.opts and not param.is_flag for param in params if hasattr(param, "is_flag")
            )
            waiting = word if takes and word != "--json" else None
        elif path not in COMMANDS and word in children(path):
            path = f"{path} {word}".strip()
            params = build(path).params if path in COMMANDS else params
        else:
            argument_count += 1
    return path, waiting, argument_count


def _long_spellings(param: Any) -> list[str]:
    return [text for text in param.opts if text.startswith("--")] if param.param_type_name == "option" else []


def _values(path: str, param: Any, environment: Mapping[str, str], folder: Path) -> Iterator[tuple[str, str]]:
    from svc.cmd.frame.values import words_of

    choices = words_of(param.type)
    if choices:
        yield from ((choice, "") for choice in choices)
        return
    name = f"{path} {param.name}"
    yield from ((word, "") for word in WORDS.get(name, ()))
    kinds = refs_of(path, param.name)
    if kinds:
        yield from _refs(environment, folder, kinds)
    if param.name in NUMBERS | LABELS or name in LABEL_COMMANDS:
        yield from _subjects(environment, folder, param.name in NUMBERS, path.startswith("pr "))
    if name in TRACKED:
        yield from _tracked_files(folder)
    if param.name == "repository":
        yield from _repository(folder)


def refs_of(path: str, name: str) -> frozenset[str]:
    """Return the kinds of refs that a parameter of a command takes the name of: branch, tag or both."""
    return REFS.get(f"{path} {name}") or REFS.get(name) or frozenset()


def _refs(environment: Mapping[str, str], folder: Path, kinds: frozenset[str]) -> Iterator[tuple[str, str]]:
    from localstore.folder import link
    from localstore.home import Home
    from svc.flows.place.known_refs import recall

    linked = link.read_repo(link.find(folder))
    refs = {linked.branch: "branch", **recall(Home.default(environment), linked.repo_id)}
    yield from ((name, kind) for name, kind in refs.items() if kind in kinds)


def _subjects(
    environment: Mapping[str, str], folder: Path, numbers: bool, proposals: bool
) -> Iterator[tuple[str, str]]:
    """Yields completions from what this machine has listed of the folder's repository. With `numbers`, they
    are (number, title) of its issues and proposals, newest first; otherwise (name, description) of its
    labels.

    `proposals` says that the command is about proposals. In the folder of a fork, the completions then come
    from the repository that was forked."""
    from localstore.folder import link
    from localstore.home import Home
    from svc.flows.place.known_subjects import recall

    home = Home.default(environment)
    stored = recall(home, link.read_repo(link.find(folder)).repo_id)
    if proposals and stored.base:
        stored = recall(home, stored.base)
    of_kind = stored.subjects if numbers else stored.labels
    names = sorted(of_kind, key=int, reverse=True) if numbers else sorted(of_kind)
    yield from ((word, terminal_safe(of_kind[word])) for word in names if word == terminal_safe(word))


def _repository(folder: Path) -> Iterator[tuple[str, str]]:
    from localstore.folder import link

    yield link.read_repo(link.find(folder)).repo, "this folder's repository"


def _tracked_files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields (path, "") for each file that the last seal has below the current folder. The path is relative
    to the current folder."""
    from localstore.folder import link

    root = link.find(folder)
    inside = folder.resolve().relative_to(root).as_posix()
    prefix = "" if inside == "." else f"{inside}/"
    under = [path.removeprefix(prefix) for path in link.read_state(root).tree if path.startswith(prefix)]
    for path in sorted(under)[:PATHS_MAX]:
        if path == terminal_safe(path):
            yield path, ""
