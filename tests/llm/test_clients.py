"""The official Python clients of Ollama and OpenAI, call by call."""

from __future__ import annotations

import json
from pathlib import Path

import ollama
import openai
import pytest

from tests.llm import tiny
from tests.llm.conftest import Kept
from tests.llm.test_api import HI, SENTENCE

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture
def client(kept: Kept) -> ollama.Client:
    return ollama.Client(host=kept.url)


@pytest.fixture
def api(kept: Kept) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{kept.url}/v1", api_key="unused")


def test_ollama_generates(client: ollama.Client) -> None:
    assert client.generate("tiny", "Hi").response == SENTENCE
    streamed = list(client.generate("tiny", "Hi", stream=True))
    assert "".join(part.response for part in streamed) == SENTENCE
    assert streamed[-1].done
    assert client.generate("tiny", "Hi", options={"num_predict": 2}).eval_count == 2
    assert client.generate("tiny", "Hi", raw=True, keep_alive="1m").done_reason == "stop"
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    assert "ok" in json.loads(client.generate("tiny", "Hi", format=schema).response)
    assert client.generate("tiny", keep_alive=0).done_reason == "unload"


def test_ollama_chats(client: ollama.Client) -> None:
    assert client.chat("tiny", HI).message.content == SENTENCE
    assert "".join(part.message.content or "" for part in client.chat("tiny", HI, stream=True)) == SENTENCE
    calls = client.chat("tool", HI, tools=[TOOL], options={"temperature": 0}).message.tool_calls
    assert calls is not None
    assert calls[0].function.arguments == {"city": "Rome"}


def test_ollama_embeds(client: ollama.Client) -> None:
    assert len(client.embed("tiny", ["a", "b"]).embeddings) == 2
    assert len(client.embeddings("tiny", "a").embedding) == tiny.WIDTH


def test_ollama_lists_shows_and_makes(client: ollama.Client, tmp_path: Path) -> None:
    assert "tiny:latest" in [one.model for one in client.list().models]
    shown = client.show("tool")
    assert shown.details is not None
    assert shown.details.family == "llama"
    assert "tools" in (shown.capabilities or [])
    digest = client.create_blob(tiny.write(tmp_path / "x.gguf", pad=5))
    assert client.create("from-client", files={"x.gguf": digest}, stream=False).status == "success"
    assert client.create("again", from_="from-client", system="Be brief", stream=False).status == "success"
    client.copy("again", "copied")
    assert client.generate("copied", "Hi").response == SENTENCE
    assert any(one.model == "copied:latest" and one.context_length for one in client.ps().models)
    for name in ("from-client", "again", "copied"):
        client.delete(name)
    with pytest.raises(ollama.ResponseError, match="model 'copied' not found") as refused:
        client.show("copied")
    assert refused.value.status_code == 404


async def test_ollama_async(kept: Kept) -> None:
    client = ollama.AsyncClient(host=kept.url)
    assert (await client.chat("tiny", HI)).message.content == SENTENCE
    parts = [part.message.content async for part in await client.chat("tiny", HI, stream=True)]
    assert "".join(parts) == SENTENCE


def test_openai_chats(api: openai.OpenAI) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    whole = api.chat.completions.create(model="tiny", messages=messages)
    assert whole.choices[0].message.content == SENTENCE
    streamed = api.chat.completions.create(model="tiny", messages=messages, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in streamed if part.choices) == SENTENCE
    called = api.chat.completions.create(model="tool", messages=messages, tools=[TOOL], temperature=0)
    assert called.choices[0].message.tool_calls[0].function.name == "get_weather"
    assert api.completions.create(model="tiny", prompt="Hi", max_tokens=5).choices[0].text
    assert api.responses.create(model="tiny", input="Hi").output_text == SENTENCE


def test_openai_embeds_and_lists(api: openai.OpenAI) -> None:
    assert len(api.embeddings.create(model="tiny", input=["a", "b"], encoding_format="float").data) == 2
    assert "tiny" in [one.id for one in api.models.list()]
    assert api.models.retrieve("tiny").id == "tiny"


def test_openai_errors(api: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="model 'nope' not found"):
        api.chat.completions.create(model="nope", messages=[{"role": "user", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="the context holds 512"):
        api.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "word " * 900}])
