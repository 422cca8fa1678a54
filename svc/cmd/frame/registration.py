"""The registration of a command, which is read without importing its module."""

from __future__ import annotations

import msgspec


class Registration(msgspec.Struct, frozen=True):
    """A registered command. `target`: module:function below `svc.cmd`. `summary`: first line of its
    docstring."""

    target: str
    summary: str
