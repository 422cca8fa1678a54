"""Artifacts of a seal: its files that are not text, such as weights, pictures and builds."""

from __future__ import annotations

from typing import Literal

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Count, Model, Page, PageQuery


class Artifact(Model, frozen=True):
    """`kind` blob: one object; chunked: a large file in chunks. `blake3`: of its bytes; `size`: how many."""

    path: str
    kind: Literal["blob", "chunked"]
    blake3: str
    size: Count


LIST = Endpoint("GET", f"{REPO}/seals/{{seal_id}}/artifacts", query=PageQuery, returns=Page[Artifact])
