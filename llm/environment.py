"""Chooses the environment variables that the programs of the server get. Tokens and everything else that
belongs to svc are left out."""

from __future__ import annotations

import os
from collections.abc import Mapping

_NAMES = (
    "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV",
    "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME",
)  # fmt: skip
_PREFIXES = ("CUDA_", "OMP_", "GGML_", "HIP_", "ROCR_", "VK_")
_OF_OLLAMA = ("OLLAMA_",)
_OF_NETWORK = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "no_proxy", "SSL_CERT_",
)  # fmt: skip


def clean_environment(
    environment: Mapping[str, str] = os.environ, *, ollama: bool = False, network: bool = False
) -> dict[str, str]:
    """The variables of `environment` that a program of the server may see. `network`: include variables for
    the network, such as proxies, for programs that download models. `ollama`: include the variables for the
    network and those of ollama."""
    prefixes = (*_PREFIXES, *(_OF_OLLAMA if ollama else ()), *(_OF_NETWORK if ollama or network else ()))
    return {name: value for name, value in environment.items() if name in _NAMES or name.startswith(prefixes)}
