"""What holds for every command of the table; none can be forgotten."""

from __future__ import annotations

import inspect
import re

import pytest

from svc.cmd.frame.command import EXAMPLES, arguments_of, build, function_of, spell_argument
from svc.cmd.frame.table import COMMANDS, GROUPS, children
from tests.svc.conftest import Svc

EVERY = sorted(COMMANDS)
NEEDS_NEITHER = ("completions", "version", "watcher list", "watch list", "queue list", "queue retry")
NEEDS_NEITHER += ("llm list", "llm ps", "llm status", "llm logs", "llm stop", "llm doctor", "app list")


@pytest.mark.parametrize("path", EVERY)
def test_help_says_what_it_does_with_examples(svc: Svc, path: str) -> None:
    told = svc(*path.split(), "--help")
    assert told.code == 0
    assert told.err == ""
    assert told.out.startswith(f"Usage: svc {path} ")
    assert COMMANDS[path].summary in told.out
    examples = told.out.partition("\nExamples:\n")[2]
    assert "svc " in examples, "a help text shows how the command is used"


@pytest.mark.parametrize("path", EVERY)
def test_usage_has_one_style(path: str) -> None:
    """Capitals for what is typed in place of them, a|b for fixed words, [ ] for what may be omitted, ... for
    what may be repeated."""
    word = r"([A-Z][A-Z./|:]*|[a-z|]+)"
    piece = rf"{word}(\.\.\.)?|\[{word}(\[:PATH\])?\](\.\.\.)?|\[ORG/\]NAME"
    for argument in arguments_of(build(path)):
        said = spell_argument(argument)
        for one in said.split(" "):
            assert re.fullmatch(piece, one), f"{path}: {said}"
        assert not re.search(r"(^|\|)[a-z]+$", said) or "|" in said, f"{path}: {said} is one fixed word"


@pytest.mark.parametrize("path", sorted({*COMMANDS, *GROUPS}))
def test_help_fits_on_eighty_columns(svc: Svc, path: str) -> None:
    wide = [line for line in svc(*path.split(), "--help").out.splitlines() if len(line) > 80]
    assert not wide, wide


@pytest.mark.parametrize("path", EVERY)
def test_the_table_repeats_the_docstring(path: str) -> None:
    text = inspect.getdoc(function_of(path)) or ""
    assert text.splitlines()[0] == COMMANDS[path].summary
    assert EXAMPLES.strip() in text


@pytest.mark.parametrize("path", EVERY)
def test_a_wrong_option_is_a_usage_error(svc: Svc, path: str) -> None:
    told = svc(*path.split(), "--no-such-option")
    assert told.code == 2
    assert told.out == ""
    assert "--no-such-option" in told.err
    assert f"Read on: svc {path} --help" in told.err
    assert "Traceback" not in told.err


@pytest.mark.parametrize("path", EVERY)
def test_too_many_arguments_are_a_usage_error(svc: Svc, path: str) -> None:
    told = svc(*path.split(), *"abcdefgh")
    if any(param.nargs == -1 for param in build(path).params):
        pytest.skip("takes any number")
    assert told.code == 2
    assert told.out == ""
    assert "Traceback" not in told.err


@pytest.mark.parametrize("path", EVERY)
def test_every_command_takes_the_global_options(path: str) -> None:
    spellings = {text for param in build(path).params for text in param.opts}
    assert {"-R", "--server", "--yes", "--json", "--jq", "-q", "--template"} <= spellings


@pytest.mark.parametrize("path", EVERY)
def test_without_a_session_or_server_it_says_what_to_do(svc: Svc, path: str) -> None:
    """Nothing is known here: no server, no link. Every command ends in one clear error, or needs neither."""
    as_data = ["--json"] if build(path).answers.data else []
    told = svc(*path.split(), *_arguments(path), *as_data, "--yes")
    assert "Traceback" not in told.err
    if path in NEEDS_NEITHER:
        assert told.code == 0
    else:
        assert told.code in (1, 2, 4), told
        assert told.out == ""
        assert re.match(r"svc: .+", told.err)


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_groups_list_their_members(svc: Svc, group: str) -> None:
    told = svc(*group.split(), "--help")
    assert told.code == 0
    for name, summary in children(group).items():
        assert name in told.out
        assert summary.split()[0] in told.out
    if group not in COMMANDS:
        assert svc(*group.split()).out == told.out


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        (["clone"], "svc repo clone"),
        (["repo", "veiw"], "svc repo view"),
        (["puhs"], "svc push"),
        (["\x1b[2Jlog"], "'\\x1b[2Jlog'"),
    ],
)
def test_an_unknown_command_names_the_nearest(svc: Svc, typed: list[str], near: str) -> None:
    told = svc(*typed)
    assert told.code == 2
    assert near in told.err
    assert "\x1b" not in told.err


def _arguments(path: str) -> list[str]:
    """One plausible word for each required argument."""
    wanted = [param for param in build(path).params if param.param_type_name == "argument" and param.required]
    return [{"shell": "bash", "who": "public"}.get(param.name, "word") for param in wanted]
