"""Labels of a repository, for its issues and proposals."""

from __future__ import annotations

from typing import Annotated

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.limits import LABEL_NAME_CHARS
from localstore.core.model.base import Description, Model, Page, PageQuery


class LabelExists(Conflict):
    """The repository has a label of this name, in whatever case."""

    code = "label_exists"


class TooManyLabels(Conflict):
    """The repository has as many labels as one may have."""

    code = "too_many_labels"


_HIDDEN = r"\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
Name = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=LABEL_NAME_CHARS,
        pattern=rf"^(?! )[^{_HIDDEN}]+(?<! )(?!\n)$",
        description=f"1 to {LABEL_NAME_CHARS} visible characters without a space at either end",
    ),
]
Color = Annotated[
    str, msgspec.Meta(pattern=r"^#?[0-9A-Fa-f]{6}(?!\n)$", description="six hex digits, such as d73a4a")
]


class Label(Model, frozen=True):
    """`color`: six lowercase hex digits."""

    name: str
    color: str
    description: str | None = None


class LabelCreate(Model, frozen=True):
    """`color` with or without a hash sign, in any case."""

    name: Name
    color: Color = "ededed"
    description: Description | None = None


LIST = Endpoint("GET", f"{REPO}/labels", query=PageQuery, returns=Page[Label])
CREATE = Endpoint("POST", f"{REPO}/labels", body=LabelCreate, returns=Label, status=201)
