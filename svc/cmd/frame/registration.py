"""The registration of a command, which is read without importing its module."""

from __future__ import annotations

import msgspec


class Registration(msgspec.Struct, frozen=True):
    """A command in the table. `target`: its function as module:function below `svc.cmd`. `summary`: first
    line of the function's docstring."""

    target: str
    summary: str
