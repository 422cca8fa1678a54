"""`python -m svc.cmd.frame.invoked`: runs one command of svc for the agent's `invoke`. It reads a `Body` as
JSON from stdin, and writes an ApiResponse.

Arguments are given by name: `{"title": "Typo", "label": ["bug"]}`. They are turned into a command line, so
that the command checks them itself. The answer is the command's `--json` output. Instead, `words` can be a
command line as a person types it. The answer is then the output for a terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from typer.exceptions import Abort, TyperException

from localstore.agent.talk import RESPONSE_BYTES, ApiError, ApiResponse
from localstore.core.errors import EXIT_OK, EXIT_PENDING, ConfirmationNeeded, SvcError, UsageError
from localstore.core.paths import PROSE, terminal_safe
from svc.agent.invoke.table import SVC_COMMANDS
from svc.cmd.frame.app import normalise, run
from svc.cmd.frame.command import Group, build
from svc.cmd.frame.context import Run
from svc.cmd.frame.table import COMMANDS
from svc.console import Out

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GLOBAL = ("repo", "server", "yes", "json")
NEVER_ENDS = {
    "watch": ("detach", True),
    "watcher start": ("foreground", False),
    "tui": ("web", False),
    "app launch": ("detach", True),
}
"""Command → the flag that it needs to end by itself."""
# Itself, what becomes a server in the foreground, and what shows a person a code while it runs.
NOT_OFFERED = ("invoke", "llm serve", "auth device pair")


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """A request to run a command, which is given either as a `command` with `args`, or as the `words` of a
    command line. The output of `words` is laid out in `width` columns. With `follow`, it is also written to
    stderr while the command runs."""

    command: str = ""
    args: dict[str, Any] = {}
    server: str | None = None
    words: list[str] = []
    width: int = 100
    follow: bool = False


class _Screen(io.TextIOWrapper):
    """A stream that looks like a terminal to commands. It collects their output as a terminal would show
    it."""

    def isatty(self) -> bool:
        return True


class _Followed(io.BytesIO):
    """A buffer that collects output. Its first RESPONSE_BYTES bytes are also written to stderr
    immediately."""

    def write(self, output: ReadableBuffer, /) -> int:
        if self.tell() < RESPONSE_BYTES:
            with suppress(OSError):  # nobody follows it any more; the command ends by a signal
                os.write(2, output)
        return super().write(output)


@cache
def system_commands() -> dict[str, str]:
    """Return the commands of svc that `invoke` has in the category System. Maps their names in `invoke`
    (`issue_list`) to their paths in svc (`issue list`)."""
    named = {path for _, path in SVC_COMMANDS.values()}
    others = [path for path in COMMANDS if path not in NOT_OFFERED and path not in named]
    return {path.replace(" ", "_").replace("-", "_"): path for path in others}


def path_of(name: str) -> str:
    """Return the path of the command of svc (`issue list`) with this name in `invoke` (`issue_list`). Raises
    UsageError if there is none."""
    if name in SVC_COMMANDS:
        return SVC_COMMANDS[name][1]
    path = system_commands().get(name)
    if path is None:
        raise _Unknown(f"there is no command '{terminal_safe(name[:60])}'; see: svc invoke --list")
    return path


class _Unknown(UsageError):
    code = "unknown_command"


def parameters(path: str) -> dict[str, Any]:
    """Return the parameters of the command at `path`, such as `issue list`, by the names that `invoke` uses.
    For an option the name is its spelling, without leading dashes and with underscores for dashes. If an
    argument already has that name, the option has its name in the Python function instead."""
    params = build(path).own_params
    by_name = {str(param.name): param for param in params if param.param_type_name == "argument"}
    for param in params:
        if param.param_type_name == "option":
            named = _long_spelling(param)[2:].replace("-", "_")
            by_name[str(param.name) if named in by_name else named] = param
    return by_name


def answer(body: Body, environment: Mapping[str, str], folder: Path) -> ApiResponse[Any]:
    """Run a command as if the user had typed it in this folder. Returns its output as a response."""
    if body.words:
        return _run_line(body)
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
    try:
        path = path_of(body.command)
        words = normalise([*path.split(), *_words(path, body.args, body.server)])
        with redirect_stdout(output), redirect_stderr(errors):
            state = Run(Out(environment, output, errors), environment, folder)
            code = Group("").main(words, prog_name="svc", standalone_mode=False, obj=state)
        if isinstance(code, int) and code:
            last = errors.getvalue().strip().splitlines()[-1:]
            sentence = last[0].removeprefix("svc: ") if last else f"it ended with {code}"
            return ApiResponse.refuse("pending" if code == EXIT_PENDING else "failed", sentence)
        return ApiResponse(True, _data(output, build(path).answers.data))
    except SvcError as error:
        return _refusal(error.code, error.detail or error.title)
    except TyperException as error:
        return _refusal(UsageError.code, str(error.format_message()))
    except (Abort, KeyboardInterrupt):
        return _refusal("interrupted", "it was interrupted")
    except OSError as error:
        return _refusal("disk_error", f"{error.filename or ''} {error.strerror or error}".strip())
    except Exception as error:
        return _refusal("failed", f"something broke inside svc ({type(error).__name__}: {error})")


def _run_line(body: Body) -> ApiResponse[Any]:
    """Run a command line. The response's `data` has its output (`text`) and exit code (`code`), even if the
    command failed. If it needs a confirmation, `question` says what is to be confirmed. The same line with
    --yes confirms it."""
    collected = _Followed() if body.follow else io.BytesIO()
    error: SvcError | None = None

    def take(raised: SvcError) -> None:
        nonlocal error
        error = raised

    screen = _Screen(collected, "utf-8", errors="replace", newline="", write_through=True)
    os.environ["COLUMNS"] = str(body.width)
    with redirect_stdout(screen), redirect_stderr(screen):
        code = run(body.words, take)
    raw = collected.getvalue()[:RESPONSE_BYTES]
    data = {"text": raw.decode("utf-8", "replace"), "code": code}
    data |= {"question": error.action} if isinstance(error, ConfirmationNeeded) else {}
    if code == EXIT_OK:
        return ApiResponse(True, data)
    last = data["text"].strip().splitlines()[-1:] if isinstance(data["text"], str) else []
    sentence = last[0].removeprefix("svc: ") if last else f"it ended with {code}"
    return ApiResponse(False, data, ApiError("pending" if code == EXIT_PENDING else "failed", sentence))


def _refusal(code: str, sentence: str) -> ApiResponse[Any]:
    return ApiResponse(False, None, ApiError(code, terminal_safe(sentence.rstrip("."), keep=PROSE)))


def _words(path: str, args: Mapping[str, Any], server: str | None) -> list[str]:
    """Return the command line that runs the command at `path` with these arguments. Raises UsageError if the
    command has no parameter of a given name, or if a value has the wrong type."""
    by_name = parameters(path)
    arguments = {name.replace("-", "_"): value for name, value in args.items() if value is not None}
    for name in arguments:
        if name not in by_name and name not in GLOBAL:
            has = ", ".join(sorted((*by_name, *GLOBAL)))
            raise UsageError(f"{path} has no argument '{terminal_safe(name[:60])}'; it has: {has}")
    flag, needed = NEVER_ENDS.get(path, ("", True))
    if flag and bool(arguments.get(flag)) != needed:
        raise UsageError(f"{path} goes on until it is ended; give {flag}: {str(needed).lower()}")
    words = _global(arguments, server, build(path).answers.data)
    typed: list[str] = []
    skipped = ""
    for name, param in by_name.items():
        if name not in arguments:
            skipped = skipped or (name if param.param_type_name == "argument" else "")
        elif param.param_type_name == "option":
            words += _option(name, param, arguments[name])
        elif skipped:
            raise UsageError(f"{name} needs {skipped} before it")
        else:
            typed += _texts(name, arguments[name], param.nargs == -1)
    return [*words, "--", *typed] if typed else words


def _global(given: Mapping[str, Any], server: str | None, data: bool) -> list[str]:
    words = []
    for name in ("repo", "server"):
        value = given.get(name, server if name == "server" else None)
        if value is not None:
            words += [f"--{name}={text}" for text in _texts(name, value, False)]
    if _is_set("yes", given.get("yes", False)):
        words.append("--yes")
    fields = _texts("json", given.get("json", []), True)
    return [*words, f"--json={','.join(fields)}"] if data or fields else words


def _option(name: str, param: Any, value: Any) -> list[str]:
    long = _long_spelling(param)
    if param.is_flag:
        if _is_set(name, value):
            return [long]
        return [param.secondary_opts[0]] if param.secondary_opts else []
    return [f"{long}={text}" for text in _texts(name, value, bool(param.multiple))]


def _long_spelling(param: Any) -> str:
    return str(next(text for text in param.opts if text.startswith("--")))


def _is_set(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} is true or false")
    return value


def _texts(name: str, value: Any, many: bool) -> list[str]:
    """Return the value of the parameter `name` as words of a command line. The result is one word or, if the
    parameter takes several (`many`), one for each item of a list. Raises UsageError for another kind of
    value."""
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) != many or any(
        isinstance(item, bool) or not isinstance(item, str | int | float) for item in values
    ):
        raise UsageError(f"{name} is {'a list of texts' if many else 'a text'}")
    return [str(item) for item in values]


def _data(output: io.TextIOWrapper, is_data: bool) -> Any:
    """Return the output of a command. If `is_data` is True, the output is decoded as one JSON value, or as
    one value for each line. Otherwise it is returned as text. Raises UsageError for more than RESPONSE_BYTES
    bytes."""
    output.flush()
    raw = bytes(output.buffer.getvalue())  # type: ignore[attr-defined]
    if len(raw) > RESPONSE_BYTES:
        raise UsageError(f"the answer has {len(raw)} bytes; ask for less: limit, or json with fields")
    if is_data:
        if not raw.strip():
            return None
        for read in (msgspec.json.decode, lambda lines: [*map(msgspec.json.decode, lines.splitlines())]):
            try:
                return read(raw)
            except msgspec.DecodeError:
                continue
    return {"text": raw.decode("utf-8", "replace")}


def main() -> int:
    body = msgspec.json.decode(sys.stdin.buffer.read(), type=Body)
    ours = os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # nobody is there to ask, and only the answer is written
        os.dup2(null, stream)
    with ours:
        ours.write(msgspec.json.encode(answer(body, os.environ, Path.cwd())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
