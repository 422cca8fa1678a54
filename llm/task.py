"""What the front sends to a new runner (its task), and what the runner reports once it has started."""

from __future__ import annotations

import msgspec

KEY_VARIABLE = "LLM_RUNNER_KEY"


class Task(msgspec.Struct, kw_only=True):
    """How to load a model. `context`: tokens of one conversation; `batch`: tokens of a prompt read at once;
    `slots`: number of conversations at once. `mean_pooling`: average the embeddings of tokens, because the
    model does not say how to join them. `template`: replaces the model's own; "": keep that."""

    path: str
    name: str
    context: int
    slots: int
    threads: int
    batch: int
    projector: str = ""
    template: str = ""
    mean_pooling: bool = True
    cache_mib: int = 0


class Started(msgspec.Struct, kw_only=True):
    """The report of a runner after its start: its address `url`, or the `error` because of which it did not
    start."""

    url: str = ""
    error: str = ""
