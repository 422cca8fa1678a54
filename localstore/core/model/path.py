"""The path policy of a repository: which paths only its writers see."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery, Sent
from localstore.core.model.limits import PATH_BYTES
from localstore.core.tree.policy import Visibility

Path = Annotated[str, msgspec.Meta(max_length=PATH_BYTES)]


class PathRule(Model, frozen=True):
    """Who sees `path` ("" is the whole tree) and everything below it, unless a longer path has its own rule.
    It applies to every seal, also to past seals. `private`: only writers; `public` and `open`: everybody who
    reads the repository. `price_cents`, `currency`: None unless the relay sells paths."""

    path: str
    visibility: Visibility
    price_cents: Count | None = None
    currency: str | None = None


class PathRuleSet(Sent, frozen=True):
    """The rule to set for a path. `price_cents`: price of the files' bytes; needs an edition with billing."""

    path: Path
    visibility: Visibility
    price_cents: Count | None = None


class PathRuleRemove(Model, frozen=True):
    path: Path


class PathChange(Model, frozen=True, rename={"was": "from", "became": "to"}):
    """A change of the rule for a path. `was`, `became` (`from`, `to` in JSON): the visibility before and
    after the change; None where the path has no rule."""

    at: str
    by: Actor
    path: str
    was: Visibility | None
    became: Visibility | None
    price_cents: Count | None = None


_ALL = f"{REPO}/paths"
LIST = Endpoint("GET", _ALL, query=PageQuery, returns=Page[PathRule])
SET = Endpoint("PUT", _ALL, body=PathRuleSet, returns=PathRule)
REMOVE: Endpoint[None] = Endpoint("DELETE", _ALL, query=PathRuleRemove, status=204)
TIMELINE = Endpoint("GET", f"{_ALL}/timeline", query=PageQuery, returns=Page[PathChange])
