"""The registration of a command. It can be read without importing the command's module."""

from __future__ import annotations

import msgspec


class Registration(msgspec.Struct, frozen=True):
    """A command in the table. `target` is its function, written as module:function below `svc.cmd`. `summary`
    is the first line of the function's docstring."""

    target: str
    summary: str
