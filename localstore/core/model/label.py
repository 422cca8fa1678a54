"""Labels of a repository, for its issues and proposals."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.limits import LABEL_NAME_CHARS
from localstore.core.model.base import Description, Model, Page, PageQuery, visible


class LabelExists(Conflict):
    """The repository has a label of this name, in whatever case."""

    code = "label_exists"


Color = msgspec.Meta(pattern=r"^#?[0-9A-Fa-f]{6}(?!\n)$", description="six hex digits, such as d73a4a")


class Label(Model, frozen=True):
    """`color`: six lowercase hex digits."""

    name: str
    color: str
    description: str | None = None


class LabelCreate(Model, frozen=True):
    """`color` with or without a hash sign, in any case."""

    name: Annotated[str, visible(LABEL_NAME_CHARS)]
    color: Annotated[str, Color] = "ededed"
    description: Description | None = None


LIST = Endpoint("GET", f"{REPO}/labels", query=PageQuery, returns=Page[Label])
CREATE = Endpoint("POST", f"{REPO}/labels", body=LabelCreate, returns=Label, status=201)
