"""Paths of the models and of the local LLM server's files. They are below `SVC_LLM_HOME`, which all SVC_HOMEs
of a user share.

    models/blobs/sha256-<hex>          the bytes of a model; its description is in `.about` beside it
    models/names/<host>/<owner>/<name>/<tag>   what a name stands for (`localstore.models.store`)
    models/lock                        held while a name or blob is added or removed
    <port>/                            start.lock, server.json, log and leases of the server on that port"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "SVC_LLM_HOME"
REGISTRIES = "SVC_LLM_REGISTRIES"
PORT_VARIABLE = "SVC_LLM_PORT"
DEFAULT_PORT = 11434


def llm_home(environment: Mapping[str, str] = os.environ) -> Path:
    """SVC_LLM_HOME if set, else the platform's data folder for svc-llm."""
    chosen = environment.get(VARIABLE)
    if chosen:
        return Path(chosen).absolute()
    from platformdirs import user_data_path

    return user_data_path("svc-llm", appauthor=False)
