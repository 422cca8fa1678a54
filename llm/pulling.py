"""Answers POST /api/pull. A separate process (`llm.puller`) downloads the model, and its output is the
answer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec

from llm.environment import clean_environment
from llm.problem import Refused
from localstore.models.place import REGISTRIES, VARIABLE

KEPT = ("SVC_HOME", VARIABLE, REGISTRIES)  # of the environment, beside what every program of the server gets


async def lines(name: str) -> AsyncGenerator[dict[str, Any], None]:
    """Pull the model `name`, and yield the lines of the answer. If the caller closes this generator, the pull
    ends. Raises Refused if the pull fails."""
    variables = {label: os.environ[label] for label in KEPT if label in os.environ}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-P", "-m", "llm.puller", name,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**clean_environment(network=True), **variables},
    )  # fmt: skip
    ended = False
    try:
        while process.stdout is not None and (line := await process.stdout.readline()):
            step = msgspec.json.decode(line, type=dict[str, Any])
            if "error" in step:
                raise Refused(500, str(step["error"]))
            ended = step.get("status") == "success"
            yield step
        if not ended:
            raise Refused(500, "the pull ended without an answer; the log says more: svc llm logs")
    finally:
        if process.stdin is not None:
            process.stdin.close()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
