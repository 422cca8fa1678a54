"""Reads YAML from untrusted sources. The result contains only text, lists and mappings. Hostile documents are
refused before anything large is built.

Aliases expand without limit. The parser in C calls itself for each level of nesting, so 60 kB of brackets
crash the process. Therefore the flat stream of events is read first. The document is refused at the first
alias, and at a depth above the limit."""

from __future__ import annotations

from typing import Any

import yaml

from localstore.core.errors import Invalid
from localstore.core.model.limits import MANIFEST_BYTES, MANIFEST_DEPTH, in_words
from localstore.core.paths import terminal_safe

# Makes text, lists and mappings only. The one in C, where PyYAML has it, reads 64 KiB in a tenth of the time.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def load(data: bytes, name: str) -> Any:
    """The content of a YAML document of at most MANIFEST_BYTES; all scalars are text. `name`: name of the
    file, for error messages. Raises Invalid."""
    if len(data) > MANIFEST_BYTES:
        raise Invalid(f"{name} is larger than {in_words(MANIFEST_BYTES)}")
    try:
        text = data.decode("utf-8-sig")
        _refuse_bombs(text, name)
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - builds text, lists, mappings only
    except UnicodeDecodeError:
        raise Invalid(f"{name} is not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        where = f" in line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise Invalid(f"{name} is not valid YAML{where}: {terminal_safe(str(error.problem))}") from None
    except (yaml.YAMLError, ValueError):
        raise Invalid(f"{name} holds characters that YAML does not allow") from None


def _refuse_bombs(text: str, name: str) -> None:
    """Raises Invalid for aliases and deep nesting. Reads only the flat stream of events, because building the
    nested content of a hostile text could crash the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise Invalid(f"{name} may not use YAML aliases")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MANIFEST_DEPTH:
            raise Invalid(f"{name} is nested deeper than {MANIFEST_DEPTH} levels")
