"""The commands of svc for the app: lists them, describes their parameters, and runs them.

    commands.summaries["issue close"]
    commands.fields("issue close")
    commands.run(["issue", "close", "41"], folder, 80, stopped, show)

`svc.cmd` contains the commands and passes their descriptions to the app. A command runs as `svc invoke` runs
it: in a separate process that answers with an ApiResponse."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from svc.agent.invoke.programs import SVC, Programs

if TYPE_CHECKING:
    from localstore.agent.talk import ApiResponse

Values = Mapping[str, str]
NOWHERE: Values = MappingProxyType({})


class Parameter(NamedTuple):
    """A parameter of a command. `spelled`: the names of an option, such as --label, or () for an argument.
    `many`: the parameter takes several words. `flag`: it is an option without a value.
    `refs`: the kinds of refs that it takes the name of, such as branch. `asked`: what a form calls it, if the
    form asks for less than a command line can have there."""

    name: str
    help: str = ""
    required: bool = False
    many: bool = False
    flag: bool = False
    spelled: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    refs: frozenset[str] = frozenset()
    asked: str = ""


REPO = Parameter("repo", "the repository, OWNER/NAME", spelled=("--repo", "-R"))
# First words of commands that are about one repository.
OF_A_REPO = frozenset({"issue", "pr", "label", "repo", "log", "show", "blame", "grep"})
# Words of commands that end or remove something.
ENDS = frozenset(
    (
        *("archive", "cancel", "clear", "close", "decline", "delete", "disable", "drop"),
        *("leave", "logout", "remove", "revoke", "rm", "stop", "transfer", "uninstall"),
    )
)
SEAL = "seal"
# Parameters that screens know by name.
SHOWN = frozenset({"run", "version", "advisory", "report", "webhook", "model"})
YES = Parameter("yes", "answer yes to every question", flag=True, spelled=("--yes", "-y"))


class Commands:
    """Describes and runs svc's commands. `summaries`: the summary of each command, by its path such as `issue
    close`. `fields`: returns the parameters of a command. `complete`: returns candidates for the last word of
    a command line, with their meanings. `first_words`: the first words of all commands of svc, also of those
    that the app does not offer. `elsewhere`: by the path of such a command, or by one of git or gh, why it
    does not run here and what does instead."""

    def __init__(
        self,
        summaries: Mapping[str, str],
        fields: Callable[[str], Sequence[Parameter]],
        complete: Callable[[list[str]], list[tuple[str, str]]],
        programs: Programs,
        first_words: Collection[str],
        elsewhere: Mapping[str, str] = NOWHERE,
    ) -> None:
        self.summaries, self.fields, self.complete, self._programs = summaries, fields, complete, programs
        self.first_words, self.elsewhere = first_words, elsewhere

    def run(
        self,
        words: list[str],
        folder: Path | None,
        width: int,
        stopped: Callable[[], bool],
        on_output: Callable[[str], None],
    ) -> ApiResponse[Any]:
        """Run a command line and return its answer, whose `data` has the output and the exit code.
        `on_output`: called while the command runs, with its output so far. Raises Cancelled once `stopped()`
        is true. Raises ClientError if the process of the command fails."""
        from localstore.agent.talk import ApiResponse  # not before the first paint

        body = msgspec.json.encode({"words": words, "width": width, "follow": True})
        answer = self._programs.run(
            SVC,
            [],
            body,
            folder or Path.cwd(),
            stopped,
            lambda output: on_output(output.decode("utf-8", "replace")),
        )
        return msgspec.json.decode(answer, type=ApiResponse[Any])

    def elsewhere_of(self, words: Sequence[str]) -> str:
        """Returns why the command at the beginning of these words does not run in the app, and what does
        instead. Returns "" if it runs, and where its help is asked for."""
        if "--help" in words or "-h" in words:
            return ""
        length = len(self.path_in(words).split())
        paths = (" ".join(words[:count]) for count in range(3, length, -1))
        return next((self.elsewhere[path] for path in paths if path in self.elsewhere), "")

    def path_in(self, words: Sequence[str]) -> str:
        """Returns the command at the beginning of these words, such as `issue close`. Returns "" if they do
        not begin with a command."""
        for count in range(min(len(words), 3), 0, -1):
            path = " ".join(words[:count])
            if path in self.summaries:
                return path
        return ""


def ends_something(path: str) -> bool:
    """Returns whether a command ends or removes something, such as `issue close`."""
    return not ENDS.isdisjoint(re.split("[ -]", path)[1:])


def parse_values(fields: Sequence[Parameter], words: Sequence[str]) -> dict[str, str] | None:
    """Returns the values that a command line gives to the parameters, by name. `words`: the words after the
    command. Returns None if they contain an unknown option."""
    options = {spelled: field for field in (*fields, REPO, YES) for spelled in field.spelled}
    arguments = [field for field in fields if not field.spelled]
    by_field: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word.startswith("-") and len(word) > 1:
            field = options.get(name)
            if field is None:
                return None
            if field.flag:
                by_field[field.name] = ["yes"]
            elif equals or rest:
                by_field.setdefault(field.name, []).append(value if equals else rest.pop(0))
        elif arguments:
            field = arguments[0] if arguments[0].many else arguments.pop(0)
            by_field.setdefault(field.name, []).append(word)
        else:
            return None
    return {name: values[0] if len(values) == 1 else shlex.join(values) for name, values in by_field.items()}


def words_of(path: str, fields: Sequence[Parameter], values: Values) -> list[str]:
    """Returns the words of the command line for these values, which are given by parameter name. Raises
    ValueError if a parameter of several words contains a quote that is not closed."""
    options: list[str] = []
    arguments: list[str] = []
    for field in (*fields, REPO, YES):
        value = values.get(field.name, "")
        if not value:
            continue
        several = shlex.split(value) if field.many else [value]
        if not field.spelled:
            arguments += several
        elif field.flag:
            options.append(field.spelled[0])
        else:
            options += [f"{field.spelled[0]}={word}" for word in several]
    dashed = any(argument.startswith("-") for argument in arguments)
    return [*path.split(), *options, *(["--"] if dashed else []), *arguments]


def missing(fields: Sequence[Parameter], values: Values) -> list[Parameter]:
    """Returns the required fields that have no value."""
    return [field for field in fields if field.required and not values.get(field.name)]


def known_values(
    path: str, fields: Sequence[Parameter], facts: Values, repo: str, *, linked: bool
) -> dict[str, str]:
    """Returns the values of a command's parameters that are known from what is on the screen, by parameter
    name. `path`: the command, such as `issue close`. `facts`: what the screen shows, such as the number of an
    issue. `repo`: the full name of the shown repository, "" if there is none. `linked`: it is the repository
    of the linked folder, which commands are about by themselves."""
    first = path.partition(" ")[0]
    names = {field.name for field in fields if not field.spelled}
    values = {name: facts[name] for name in names & SHOWN & set(facts) if not path.endswith(" create")}
    if "number" in names and first in facts:
        values["number"] = facts[first]
    if path.startswith("repo protect ") and "branch" in names and "pattern" in facts:
        values["branch"] = facts["pattern"]
    if any(field.name == SEAL for field in fields) and SEAL in facts:
        values[SEAL] = facts[SEAL]
    if repo and "repository" in names:
        values["repository"] = repo
    elif repo and first in OF_A_REPO and not linked:
        values["repo"] = repo
    return values
