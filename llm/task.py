"""The task of a runner, and the runner's report once it has started."""

from __future__ import annotations

import msgspec

KEY_VARIABLE = "LLM_RUNNER_KEY"


class Task(msgspec.Struct, kw_only=True):
    """How to load a model. `context`: tokens of one conversation; `batch`: tokens of a prompt read at once;
    `slots`: number of simultaneous conversations. `mean_pooling`: the model does not specify the pooling of
    its embeddings. `template`: replaces the model's own; "" if there is none."""

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
    """The report of a runner. `url`: its address; or `error`: why it did not start."""

    url: str = ""
    error: str = ""
