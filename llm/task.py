"""The task that the front sends to a new runner, and the report of the runner once it has started."""

from __future__ import annotations

import msgspec

KEY_VARIABLE = "LLM_RUNNER_KEY"


class Task(msgspec.Struct, kw_only=True):
    """The task of a runner: how to load a model. `context`: length of one conversation in tokens; `batch`:
    how many tokens of a prompt the engine reads at once; `slots`: number of conversations at the same time.
    `mean_pooling`: average the embeddings of tokens, because the model does not say how to join them.
    `template`: the chat template; "" for the model's own."""

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
    """The report of a runner after its start. `url`: its address; `error`: why it did not start."""

    url: str = ""
    error: str = ""
