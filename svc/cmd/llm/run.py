"""`svc llm run`: a chat in the terminal, or one prompt from a script."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from localstore.core.errors import SvcError, UsageError
from localstore.core.paths import PROSE, terminal_safe
from localstore.models.leases import lease
from localstore.models.names import parse
from svc.cmd.frame.context import Ctx
from svc.cmd.llm.models import Name, models_of
from svc.cmd.llm.server import Port, chosen_port
from svc.console import answers_text

HELP = (
    "/set system TEXT · /set NAME VALUE, such as num_ctx 8192 · /set format json · /load MODEL · /clear · "
    '/show · /bye; """ begins and ends a text of several lines; Ctrl-C ends an answer, Ctrl-D the chat'
)
INPUT_BYTES = 16 << 20


@answers_text
def run(
    ctx: Ctx,
    model: Name,
    prompt: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROMPT]...", help="Answer this and end; else a chat begins"),
    ] = None,
    system: Annotated[
        str, typer.Option("--system", metavar="TEXT", help="What the model is told first")
    ] = "",
    option: Annotated[
        list[str] | None,
        typer.Option("-o", "--option", metavar="NAME=VALUE", help="Such as num_ctx=8192 or temperature=0"),
    ] = None,
    format: Annotated[str | None, typer.Option("--format", metavar="json", help="The answer is JSON")] = None,
    keep_alive: Annotated[
        str | None,
        typer.Option("--keepalive", metavar="TIME", help="How long the model stays loaded: 10m, -1"),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Say how many tokens a second it made")] = False,
    port: Port = None,
) -> None:
    """Chat with a model, or answer one prompt

    The server is started if none answers. In a pipe the input is the prompt, and the answer is plain text. In
    a chat, Ctrl-C stops the answer but not the chat. The commands in a chat are /set, /load, /clear and /bye.

    Examples:
    svc llm run tiny
    svc llm run tiny "Why is the sky blue?" -o temperature=0
    svc llm run tiny "Sum this up" < notes.md
    """
    from svc.flows.llm import server
    from svc.flows.llm.chat import Conversation, bring
    from svc.flows.llm.talk import Server

    name, number, models = parse(model), chosen_port(ctx, port), models_of(ctx)
    if format not in (None, "json"):
        raise UsageError("--format takes json")
    talk = Conversation(Server(number), name)
    talk.system, talk.format, talk.keep_alive = system, format, keep_alive
    for given in option or []:
        label, equals, value = given.partition("=")
        if not equals:
            raise UsageError(f"--option takes NAME=VALUE, not '{terminal_safe(given[:60])}'")
        talk.set_option(label.strip(), value.strip())
    words = " ".join(prompt or [])
    environment, home = ctx.obj.environment, ctx.obj.home.root
    server_status = server.status(number, environment)
    if server_status.kind in ("none", "embedded"):
        models.files_to_load(models.find(name))
    with lease(server.folder_of(number, environment), "svc-llm-run"):
        server.start(number, environment, home, stays=False, say=ctx.out.note)
        bring(Server(number), models, name)
        if not sys.stdin.isatty():
            piped = sys.stdin.read(INPUT_BYTES)
            words = "\n\n".join(part for part in (words, piped.strip()) if part)
            if not words:
                raise UsageError("there is nothing to answer: give a prompt, or pipe one in")
        if words:
            _answer(ctx, talk, words, verbose)
        else:
            _chat(ctx, talk, models, verbose)


def _chat(ctx: Ctx, talk: Any, models: Any, verbose: bool) -> None:
    """Read prompts and print their answers, until the input ends or the user types /bye."""
    with suppress(ImportError):
        import readline  # noqa: F401 - input() edits the line with it
    ctx.out.note(f"chat with {talk.model.short}; /? lists what can be typed, Ctrl-D ends it")
    while True:
        try:
            typed = _read()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            ctx.out.note("Ctrl-D, or /bye, ends the chat")
            continue
        try:
            if not _carry_out(ctx, talk, models, typed, verbose):
                return
        except SvcError as error:
            ctx.out.error(error)


def _carry_out(ctx: Ctx, talk: Any, models: Any, typed: str, verbose: bool) -> bool:
    """Answer the prompt that the user typed, or carry out a command that begins with `/`. Returns False if
    the chat is to end. Raises SvcError if the model or the server fails."""
    from svc.flows.llm.chat import bring

    command, _, rest = typed.strip().partition(" ")
    match command:
        case "":
            pass
        case "/bye" | "/exit" | "/quit":
            return False
        case "/?" | "/help":
            ctx.out.note(HELP)
        case "/set":
            ctx.out.note(talk.set(rest))
        case "/clear":
            talk.messages.clear()
            ctx.out.note("the conversation begins again")
        case "/load":
            name = parse(rest.strip())
            bring(talk.server, models, name)
            talk.model = name
            ctx.out.note(f"now with {name.short}")
        case "/show":
            options = talk.options or "no options"
            ctx.out.note(f"{talk.model}, {len(talk.messages)} messages, {options}")
        case _ if command.startswith("/") and "/" not in command[1:]:
            ctx.out.note(f"there is no {terminal_safe(command[:40])}; {HELP}")
        case _:
            _answer(ctx, talk, typed, verbose)
    return True


def _read() -> str:
    text = input(">>> ")
    if not text.lstrip().startswith('"""'):
        return text
    lines = [text.lstrip()[3:]]
    while not lines[-1].rstrip().endswith('"""'):
        lines.append(input("... "))
    lines[-1] = lines[-1].rstrip()[:-3]
    return "\n".join(lines)


def _answer(ctx: Ctx, talk: Any, text: str, verbose: bool) -> None:
    """Send a prompt, and print the answer while it arrives; with `verbose`, also how many tokens a second the
    model made. In a chat, Ctrl-C ends only the answer. In a script it ends the command."""
    from svc.console.markdown import MarkdownStream

    painted = MarkdownStream() if ctx.out.colours else None
    chatting = sys.stdin.isatty() and ctx.out.terminal
    ended = "\n"
    try:
        for piece, thought in talk.say(text):
            if thought:
                if ctx.out.noted and chatting:
                    print(terminal_safe(piece, keep=PROSE), end="", file=sys.stderr, flush=True)
                continue
            ended = piece[-1]
            if painted is not None:
                ctx.out.draw(painted.feed(piece))
            elif ctx.out.terminal:
                ctx.out.draw(terminal_safe(piece, keep=PROSE))
            else:
                ctx.out.draw(piece)
    except KeyboardInterrupt:
        if not chatting:
            raise
        ended = ""
    finally:
        rest = painted.end() if painted is not None else ""
        ctx.out.draw(rest + ("" if ended == "\n" else "\n"))
    spent = talk.last.get("eval_duration") or 0
    if verbose and spent:
        count = talk.last.get("eval_count", 0)
        read, rate = talk.last.get("prompt_eval_count", 0), count / spent * 1e9
        ctx.out.note(f"{read} tokens read, {count} made, {rate:.1f} a second")
