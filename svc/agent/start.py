"""Connects a client to the agent, starting it if none runs."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import suppress

from localstore.agent import place
from localstore.agent.talk import AgentSilent, Conversation, Request
from localstore.errors import AgentMissing
from localstore.home import Home
from svc import UTF8_NAMES

WORDS = ("svc.agent",)
START_SECONDS = 30.0
LOOK_SECONDS = 0.02


def reach(home: Home) -> Conversation | None:
    """Connect to the running agent. Returns the connection; None if no agent runs."""
    try:
        return Conversation(home.root)
    except AgentSilent:
        return None


def tell(home: Home, request: Request) -> None:
    """Tell the running agent something, whatever it answers. Does nothing if no agent runs."""
    with suppress(AgentSilent), Conversation(home.root) as agent:
        agent.ask(request)


def start(home: Home) -> Conversation:
    """Connect to the agent, and start it if none runs. Returns the connection. A started agent goes on
    running when this process or its terminal ends. Raises AgentMissing, with the agent's last message, if it
    cannot be started."""
    conversation = reach(home)
    if conversation is not None:
        return conversation
    home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    words = home.root / f"{place.LOG}.start"
    with words.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *UTF8_NAMES, "-P", "-m", *WORDS, str(home.root.resolve())],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            start_new_session=True,
        )
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        conversation = reach(home)
        if conversation is not None:
            return conversation
        code = process.poll()
        if code not in (None, 3):  # 3: another agent started first, and will answer
            break
        time.sleep(LOOK_SECONDS)
    lines = [line for line in words.read_text("utf-8", "replace").splitlines() if line.strip()]
    raise AgentMissing(lines[-1] if lines else "it said nothing")
