"""Models that think, that see, and that have several files."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import ollama
import openai
import pytest

from localstore.models.errors import ServerFailed
from tests.llm import tiny
from tests.llm.conftest import Kept
from tests.llm.test_api import HI, SENTENCE, asked

THOUGHT = "Let me see."


def png() -> bytes:
    """A red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("path", "body"), [("/api/chat", {"messages": HI}), ("/api/generate", {"prompt": "Hi"})]
)
def test_what_a_model_thinks_is_apart_from_what_it_says(kept: Kept, path: str, body: dict[str, Any]) -> None:
    body = {"model": "think", **body}
    whole = kept.talk.post(path, {**body, "stream": False})
    said = whole.get("message", whole)
    assert (said.get("content", said.get("response")), said["thinking"].strip()) == (SENTENCE, THOUGHT)
    parts = [line.get("message", line) for line in kept.talk.stream(path, {**body, "think": True})]
    assert "".join(part.get("thinking", "") for part in parts).strip() == THOUGHT
    assert "".join(part.get("content", part.get("response", "")) for part in parts) == SENTENCE
    without = kept.talk.post(path, {**body, "think": False, "stream": False})
    assert "thinking" not in without.get("message", without)
    with pytest.raises(ServerFailed, match="model 'tiny' does not think"):
        kept.talk.post(path, {**body, "model": "tiny", "think": True})


def test_clients_see_thinking(kept: Kept) -> None:
    answer = ollama.Client(host=kept.url).chat("think", HI, think=True)
    assert (answer.message.content, (answer.message.thinking or "").strip()) == (SENTENCE, THOUGHT)
    assert "thinking" in (ollama.Client(host=kept.url).show("think").capabilities or [])
    api = openai.OpenAI(base_url=f"{kept.url}/v1", api_key="unused")
    message = api.chat.completions.create(model="think", messages=[{"role": "user", "content": "Hi"}])
    assert message.choices[0].message.content == SENTENCE
    assert message.choices[0].message.reasoning_content.strip() == THOUGHT  # type: ignore[attr-defined]


def test_a_picture_takes_its_patches_of_the_prompt(kept: Kept) -> None:
    picture = base64.b64encode(png()).decode()
    body: dict[str, Any] = {"model": "see", "prompt": "Hi", "stream": False}
    blind = kept.talk.post("/api/generate", body)["prompt_eval_count"]
    seen = kept.talk.post("/api/generate", {**body, "images": [picture]})
    assert (seen["response"], seen["prompt_eval_count"]) == (SENTENCE, blind + 4)
    client = ollama.Client(host=kept.url)
    messages = [{"role": "user", "content": "Hi", "images": [png()]}]
    assert client.chat("see", messages).prompt_eval_count == blind + 4
    assert "vision" in (client.show("see").capabilities or [])
    url = {"url": f"data:image/png;base64,{picture}"}
    parts = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": url}]
    status, whole = asked(
        kept,
        "POST",
        "/v1/chat/completions",
        {"model": "see", "messages": [{"role": "user", "content": parts}]},
    )
    assert (status, whole["usage"]["prompt_tokens"]) == (200, blind + 4)
    for wrong in ("no picture", base64.b64encode(b"no picture").decode()):
        assert 400 <= asked(kept, "POST", "/api/generate", {**body, "images": [wrong]})[0] < 500
    with pytest.raises(ServerFailed, match="model 'tiny' does not take images"):
        kept.talk.post("/api/generate", {**body, "model": "tiny", "images": [picture]})
    assert kept.talk.post("/api/generate", body)["response"] == SENTENCE


def test_a_model_of_several_files_generates(kept: Kept, tmp_path: Path) -> None:
    assert (
        kept.talk.post("/api/generate", {"model": "shards", "prompt": "Hi", "stream": False})["response"]
        == SENTENCE
    )
    client = ollama.Client(host=kept.url)
    files = tiny.write_shards(tmp_path, 2, pad=9)
    blobs = {file.name: client.create_blob(file) for file in files}
    with pytest.raises(ollama.ResponseError, match="they hold 1 of the 2 shards"):
        client.create("two", files={"b": blobs[files[1].name]})
    assert client.create("two", files=dict(reversed(blobs.items())), stream=False).status == "success"
    assert client.generate("two", "Hi").response == SENTENCE
    folder = kept.home / "models" / "shards"
    loaded = len(list(folder.iterdir()))
    client.delete("two")
    assert len(list(folder.iterdir())) == loaded - 1
