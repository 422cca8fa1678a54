"""Artifacts of a seal: its files that are not text, such as weights, pictures and builds."""

from __future__ import annotations

from typing import Literal

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Count, Model, Page, PageQuery


class Artifact(Model, frozen=True):
    """A file of a seal that is not text. `kind`: `blob` if it is stored as one object, `chunked` if it is
    stored in chunks, as large files are. `blake3` and `size` (bytes) describe its content."""

    path: str
    kind: Literal["blob", "chunked"]
    blake3: str
    size: Count


LIST = Endpoint("GET", f"{REPO}/seals/{{seal_id}}/artifacts", query=PageQuery, returns=Page[Artifact])
