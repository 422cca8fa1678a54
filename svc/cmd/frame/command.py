"""Builds a command from the table of commands, and adds the options that all commands share. A command is
built, and its module imported, only when it is used."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from difflib import get_close_matches
from functools import partial
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from localstore.core.errors import UsageError
from localstore.core.paths import terminal_safe
from svc import __version__
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.foreign_commands import INSTEAD, OTHER_NAMES, WORDS
from svc.cmd.frame.json_option import is_list_of, with_fields
from svc.cmd.frame.over_ssh import require_no_files, require_offered
from svc.cmd.frame.queueing import catching_queued, is_queueable, needs_repo, offering_queue, queue_option
from svc.cmd.frame.table import COMMANDS, GROUPS, children
from svc.cmd.frame.values import TYPED, explain_values, words_of
from svc.console import Answers, Format, answers_of
from svc.http.remote import link

EXAMPLES = "\nExamples:\n"
HELP = {"help_option_names": ["-h", "--help"]}


def shared_options() -> list[TyperOption]:
    """Return the global options, which every command and group of commands accepts at any position."""

    def option(name: str, *spelling: str, help: str, metavar: str = "") -> TyperOption:
        def keep(ctx: Any, value: Any) -> Any:
            if value not in (None, False):
                ctx.obj.given[name] = value
            return value

        return TyperOption(
            param_decls=[*spelling, f"global_{name}"],
            help=help,
            metavar=metavar or None,
            is_flag=not metavar,
            default=None if metavar else False,
            type=str if metavar else bool,
            expose_value=False,
            callback=lambda ctx, _param, value: keep(ctx, value),
        )

    return [
        option(
            "repo",
            "-R",
            "--repo",
            metavar="[HOST/]OWNER/NAME",
            help="The repository, instead of this folder's",
        ),
        option("server", "--server", metavar="URL", help="The server, instead of the one signed in to last"),
        option("yes", "--yes", "-y", help="Answer yes to every question"),
        option(
            "json", "--json", metavar="[FIELDS]", help="Answer as JSON; without FIELDS, the table's columns"
        ),
        option("jq", "--jq", "-q", metavar="EXPR", help="Filter the JSON with a jq program"),
        option(
            "template", "--template", metavar="TEXT", help="Format each item, such as '{{name}} {{head}}'"
        ),
    ]


class Command(TyperCommand):
    """A command with its own options, the global options, and examples in its help."""

    context_class = Ctx
    answers: Answers
    queues = False  # whether it has the option `--queue`
    needs_repo = False  # whether what it queues is about a repository

    def __init__(self, *args: Any, **settings: Any) -> None:
        text, _, examples = str(settings.get("help") or "").partition(EXAMPLES)
        self.examples = examples
        settings["help"] = text.strip()
        settings["context_settings"] = HELP
        super().__init__(*args, **settings)
        for param in self.params:
            param.type = explain_values(param.type)
        self.own_params = list(self.params)
        self.params.extend(shared_options())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        required = sum(param.param_type_name == "argument" and param.required for param in self.own_params)
        fields = self.answers.fields
        decide = partial(is_list_of, fields, required)
        ctx.meta[TYPED] = tuple(args)
        return super().parse_args(ctx, with_fields(args, self.params, decide))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [self.options_metavar or "", *map(spell_argument, arguments_of(self))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        group = ctx.command_path.partition(" ")[2]
        if group in GROUPS:
            with formatter.section("Commands"):
                formatter.write_dl(list(children(group).items()))
        own = [param for param in self.get_params(ctx) if not (param.name or "").startswith("global_")]
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            _section(ctx, formatter, title, [param for param in own if param.param_type_name == kind])
        _section(ctx, formatter, "Global options", [p for p in self.params if p not in self.own_params])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line in inspect.cleandoc(self.examples).splitlines():
                    formatter.write(f"  {line}\n" if line else "\n")

    def invoke(self, ctx: Any) -> Any:
        given, out = ctx.obj.given, ctx.obj.out
        ctx.obj.command = ctx.command_path
        ssh = link(ctx.obj.environment)
        if ssh is not None:
            require_offered(ctx.command_path.partition(" ")[2], given.get("server"), ssh.agent)
            require_no_files(self.own_params, ctx.params)
        _require_format(ctx.command_path, given.get("template"), self.own_params)
        answer_format = Format.of(given.get("json"), given.get("jq"), given.get("template"))
        self.answers.check(answer_format)
        out.format, out.answers = answer_format, self.answers
        if not given.get("queue"):
            with offering_queue(ctx.obj, self.needs_repo) if self.queues else nullcontext():
                return super().invoke(ctx)
        with catching_queued(out, ctx.obj.home):
            return super().invoke(ctx)


class Group(TyperGroup):
    """A group of commands. The module of a command is imported when the command is used."""

    context_class = Ctx

    def __init__(self, path: str) -> None:
        name = path.rsplit(maxsplit=1)[-1] if path else "svc"
        super().__init__(name=name, help=GROUPS[path], rich_markup_mode=None, context_settings=HELP)
        self.path = path
        self.params.extend(shared_options())
        if not path:
            self.params.append(_version_option())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        below = children(self.path)
        words = with_fields(args, self.params, lambda text, _others: text not in below, leading=True)
        return super().parse_args(ctx, words or self._nothing_typed(ctx))

    def _nothing_typed(self, ctx: Any) -> list[str]:
        """Return the words to run if the user typed none. For `svc` alone that is the app, if there is a
        terminal and a known server. Otherwise it is `--help`."""
        if self.path == "" and ctx.obj.on_terminal and ctx.obj.knows_server:
            return ["tui"]
        return ["--help"]

    def list_commands(self, ctx: Any) -> list[str]:
        return list(children(self.path))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        path = f"{self.path} {cmd_name}".strip()
        if path in COMMANDS:
            return build(path)
        return Group(path) if path in GROUPS and path else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in children(self.path):
            _unknown(self.path, args)
        path = f"{self.path} {args[0]}".strip()
        if path in COMMANDS and path in GROUPS and any(word in children(path) for word in args[1:2]):
            return args[0], Group(path), args[1:]  # a command that has commands of its own: svc watch list
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(children(self.path).items()))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _section(ctx, formatter, "Global options", self.get_params(ctx))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        formatter.write_paragraph()
        command = f"svc {self.path}".strip()
        formatter.write_text(f"Run `{command} COMMAND --help` for what a command does, with examples.")


def build(path: str) -> Any:
    """Return the command at `path`, such as `issue list`. Imports its module."""
    function = function_of(path)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(path.rsplit(maxsplit=1)[-1], cls=Command)(function)
    command: Any = typer.main.get_command(app)
    command.answers = answers_of(function)
    if is_queueable(function):
        command.queues, command.needs_repo = True, needs_repo(function)
        option = queue_option()
        command.own_params.append(option)
        command.params.insert(len(command.own_params) - 1, option)
    return command


def function_of(path: str) -> Callable[..., None]:
    module, _, name = COMMANDS[path].target.partition(":")
    function: Callable[..., None] = getattr(importlib.import_module(f"svc.cmd.{module}"), name)
    return function


def _require_format(command: str, template: str | None, own: list[Any]) -> None:
    """Raise UsageError if the user typed `--template NAME`, as for gh, to choose an issue template. In svc
    `--template` formats the answer, and `--from-template` chooses an issue template."""
    if template and "{" not in template and any("--from-template" in param.opts for param in own):
        label = terminal_safe(template[:100])
        raise UsageError(
            f"--template formats the answer, such as '{{{{number}}}}'; {command} --from-template {label} "
            "begins with the template of that name"
        )


def arguments_of(command: Command) -> list[Any]:
    return [param for param in command.own_params if param.param_type_name == "argument"]


def spell_argument(argument: Any) -> str:
    """Return an argument as usage lines show it: NAME, a|b for fixed words, [NAME] if it may be left out,
    NAME... if it may be repeated. A metavar with brackets is returned unchanged."""
    given = str(argument.metavar or "")
    if given.startswith("["):
        return given
    name = given or "|".join(words_of(argument.type)) or str(argument.name).upper()
    repeated = "..." if argument.nargs == -1 and not name.endswith("...") else ""
    return f"{name}{repeated}" if argument.required else f"[{name}]{repeated}"


def records_of(ctx: Any, params: list[Any]) -> list[tuple[str, str]]:
    """Return (spelling, meaning) of each of these parameters, for a help text. Hidden parameters are left
    out."""
    pairs = [(param, record) for param in params if (record := param.get_help_record(ctx)) is not None]
    return [
        (spell_argument(param) if param.param_type_name == "argument" else name, meaning)
        for param, (name, meaning) in pairs
    ]


def _section(ctx: Any, formatter: Any, title: str, params: list[Any]) -> None:
    records = records_of(ctx, params)
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


def _unknown(group: str, words: list[str]) -> NoReturn:
    """Raise UsageError for an unknown command. The error has a hint. If git or gh has such a command, the
    hint says what to type in svc. Otherwise it is a command of this name in another group, or the most
    similar name. If the command is planned but missing in this version, the error says so."""
    from svc.cmd.frame.specified import not_built

    typed, names = words[0], children(group)
    renamed = OTHER_NAMES.get(typed, "").split() if not group else []
    absent = not_built(group, [*renamed, *words[1:]] if renamed else words)
    if absent:
        raise UsageError(f"svc {absent} is not in this version of svc; svc --help lists what is")
    for length in (2, 1):
        habit = f"{group} {' '.join(words[:length])}".strip()
        if habit in WORDS:
            raise UsageError(f"there is no command '{habit}'; {WORDS[habit]}")
    if group in INSTEAD:
        raise UsageError(f"there is no command '{_command_label(group, typed)}'; {INSTEAD[group]}")
    near = [" ".join(renamed)] if renamed else []
    same = [path for path in (*COMMANDS, *GROUPS) if path.split()[-1:] == [typed]]
    near += [path for path in same if path.startswith(f"{group} ".lstrip())]
    near += [f"{group} {name}".strip() for name in get_close_matches(typed, names, 1, 0.6)]
    near += same
    meant = (
        [] if near or group else get_close_matches(typed, [word for word in WORDS if " " not in word], 1, 0.8)
    )
    if meant:
        raise UsageError(
            f"there is no command '{_command_label(group, typed)}', nor '{meant[0]}'; {WORDS[meant[0]]}"
        )
    hint = f"; did you mean: svc {near[0]}" if near else f"; see: {f'svc {group}'.strip()} --help"
    raise UsageError(f"there is no command '{_command_label(group, typed)}'{hint}")


def _command_label(group: str, typed: str) -> str:
    return terminal_safe(f"{group} {typed}".strip()[:100])


def _version_option() -> TyperOption:
    def show(ctx: Any, _param: Any, value: bool) -> None:
        if value:
            ctx.obj.out.text(f"svc {__version__}\n")
            ctx.exit(0)

    return TyperOption(
        param_decls=["--version"],
        help="Show this program's version",
        is_flag=True,
        type=bool,
        default=False,
        expose_value=False,
        is_eager=True,
        callback=show,
    )
