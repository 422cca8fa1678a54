"""What a command answers, declared with the command, so that a wrong wish is refused before the command runs.

    @answers(COLUMNS, Repo)
    def view(ctx: Ctx) -> None: ...

`--json FIELDS`, `--jq` and `--template` are checked against the declaration (`Answers.check`); `Out` gives no
field that was not declared.
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
    """The fields a command can give: its columns, and the further members of `model`. `table`: columns of the
    table that it shows instead, where its answer as data has another form. `data` False: it gives text alone.
    `own` False: what it gives is the server's, with fields that svc does not know."""

    columns: tuple[Column, ...] = ()
    model: type | None = None
    table: tuple[Column, ...] = ()
    data: bool = True
    own: bool = True

    @property
    def fields(self) -> list[str]:
        return list(dict.fromkeys([column.name for column in self.columns] + members(self.model)))

    def check(self, wanted: Format) -> None:
        """Raise UsageError for an answer that this command cannot give."""
        if not wanted.as_data:
            return
        if not self.data:
            raise UsageError("this command prints text, no fields; leave --json, --jq and --template away")
        if wanted.jq is not None:
            select.compiled_jq(wanted.jq)
        if self.own:
            chosen = select.chosen_fields(wanted, [column.name for column in self.columns], self.fields)
            if wanted.template is not None:
                select.check_template(wanted.template, chosen)
        elif wanted.fields or wanted.template is not None:
            raise UsageError("this command gives the server's answer as it is; choose from it with --jq")


def answers(
    columns: Sequence[Column], model: type | None = None, table: Sequence[Column] = ()
) -> Callable[[F], F]:
    """Declare a command whose answer has these columns, and with `--json` the members of `model` too.
    `table`: see `Answers`."""
    return _declared(Answers(tuple(columns), model, tuple(table)))


def answers_text(function: F) -> F:
    """Declare a command that prints text alone."""
    return _declared(Answers(data=False))(function)


def answers_any(function: F) -> F:
    """Declare a command that passes on what the server answers."""
    return _declared(Answers(own=False))(function)


def answers_of(function: Callable[..., Any]) -> Answers:
    """What was declared. TypeError for a command that declares nothing."""
    found = getattr(function, _NAME, None)
    if not isinstance(found, Answers):
        raise TypeError(f"{function.__module__}.{function.__name__} does not declare what it answers")
    return found


def members(model: type | None) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(model)] if model else []


def _declared(what: Answers) -> Callable[[F], F]:
    def declare(function: F) -> F:
        setattr(function, _NAME, what)
        return function

    return declare
