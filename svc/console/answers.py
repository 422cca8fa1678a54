"""Declares the fields of a command's answer, so that a wrong field is refused before the command runs.

    @answers(COLUMNS, Repo)
    def view(ctx: Ctx) -> None: ...

`--json FIELDS`, `--jq` and `--template` are checked against the declaration (`Answers.check`); `Out` prints
declared fields only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from localstore.core.errors import UsageError
from svc.console import select
from svc.console.select import Format
from svc.console.table import Column

F = TypeVar("F", bound=Callable[..., Any])
_NAME = "__svc_answers__"


class Answers(msgspec.Struct, frozen=True):
    """The fields that a command can print: its `columns`, and the members of `model`. The members of `model`
    are printed only on request, as by `--json`.

    `table` has the columns for a terminal, if they differ from `columns`. `data` is False for a command that
    prints only text. `own` is False for a command that prints the server's answer unchanged. svc then does
    not know which fields there are."""

    columns: tuple[Column, ...] = ()
    model: type | None = None
    table: tuple[Column, ...] = ()
    data: bool = True
    own: bool = True

    @property
    def fields(self) -> list[str]:
        return list(dict.fromkeys([column.name for column in self.columns] + members(self.model)))

    def check(self, answer_format: Format) -> None:
        """Raise UsageError if the command cannot answer in this format, or lacks one of its fields."""
        if not answer_format.as_data:
            return
        if not self.data:
            raise UsageError("this command prints plain text; omit --json, --jq and --template")
        if answer_format.jq is not None:
            select.compiled_jq(answer_format.jq)
        if self.own:
            chosen = select.select_fields(
                answer_format, [column.name for column in self.columns], self.fields
            )
            if answer_format.template is not None:
                select.check_template(answer_format.template, chosen)
        elif answer_format.fields or answer_format.template is not None:
            raise UsageError("this command gives the server's answer as it is; choose from it with --jq")


def answers(
    columns: Sequence[Column], model: type | None = None, table: Sequence[Column] = ()
) -> Callable[[F], F]:
    """A decorator that declares the fields of a command's answer. The parameters are the members of `Answers`
    with the same names."""
    return _declare(Answers(tuple(columns), model, tuple(table)))


def answers_text(function: F) -> F:
    """A decorator that declares that a command prints only text."""
    return _declare(Answers(data=False))(function)


def answers_any(function: F) -> F:
    """A decorator that declares that a command prints the server's answer unchanged."""
    return _declare(Answers(own=False))(function)


def answers_of(function: Callable[..., Any]) -> Answers:
    """Return the declared answer of a command. Raises TypeError if the command declares none."""
    declaration = getattr(function, _NAME, None)
    if not isinstance(declaration, Answers):
        raise TypeError(f"{function.__module__}.{function.__name__} does not declare what it answers")
    return declaration


def members(model: type | None) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(model)] if model else []


def _declare(what: Answers) -> Callable[[F], F]:
    def declare(function: F) -> F:
        setattr(function, _NAME, what)
        return function

    return declare
