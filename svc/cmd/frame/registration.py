"""The registration of a command, which is read without importing its module."""

from __future__ import annotations

import msgspec


class Registration(msgspec.Struct, frozen=True):
    """`target` is module:function below `svc.cmd`. `summary`: the first line of its docstring."""

    target: str
    summary: str
