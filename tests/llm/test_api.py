"""The routes of /api and /v1, with a real engine and tiny models."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.request
from pathlib import Path
from typing import Any, Protocol

import pytest

from localstore.models.errors import ServerFailed
from tests.llm import tiny
from tests.llm.conftest import Kept

SENTENCE = "".join(tiny.SENTENCE)
HI = [{"role": "user", "content": "Hi"}]


class _HasPort(Protocol):
    port: int


def asked(kept: _HasPort, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and body, which is decoded if it is JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", kept.port, timeout=60)
    data = body if isinstance(body, (bytes, str)) or body is None else json.dumps(body)
    connection.request(method, path, data, {name.replace("_", "-"): text for name, text in headers.items()})
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    try:
        return answer.status, json.loads(raw)
    except ValueError:
        return answer.status, raw.decode()


def test_generate_streams_lines_and_ends_with_counts(kept: Kept) -> None:
    lines = list(kept.talk.stream("/api/generate", {"model": "tiny", "prompt": "Hi"}))
    assert len(lines) > 5
    assert "".join(line["response"] for line in lines) == SENTENCE
    *before, last = lines
    assert [line["done"] for line in before] == [False] * len(before)
    assert set(before[0]) == {"model", "created_at", "response", "done"}
    assert last["done"] is True
    assert last["done_reason"] == "stop"
    assert last["eval_count"] == len(tiny.SENTENCE) + 1
    assert last["prompt_eval_count"] > 3
    counts = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
    assert all(isinstance(last[name], int) and last[name] >= 0 for name in counts)
    assert all(isinstance(one, int) for one in last["context"])


def test_a_whole_answer_is_one_object(kept: Kept) -> None:
    whole = kept.talk.post("/api/generate", {"model": "tiny:latest", "prompt": "Hi", "stream": False})
    assert (whole["response"], whole["done"], whole["model"]) == (SENTENCE, True, "tiny:latest")
    chat = kept.talk.post("/api/chat", {"model": "tiny", "messages": HI, "stream": False})
    assert chat["message"] == {"role": "assistant", "content": SENTENCE}
    assert "response" not in chat


def test_a_conversation_goes_on_from_its_context(kept: Kept) -> None:
    first = kept.talk.post("/api/generate", {"model": "tiny", "prompt": "Hi", "stream": False})
    again = {"model": "tiny", "prompt": "More", "stream": False, "context": first["context"]}
    second = kept.talk.post("/api/generate", again)
    assert second["response"] == SENTENCE
    assert second["context"][: len(first["context"])] == first["context"]
    assert len(second["context"]) > len(first["context"])


def test_options_are_obeyed(kept: Kept) -> None:
    body = {"model": "loop", "prompt": "Hi", "stream": False, "options": {"num_predict": 7}}
    short = kept.talk.post("/api/generate", body)
    assert (short["eval_count"], short["done_reason"]) == (7, "length")
    body["options"] = {"num_predict": 50, "stop": [" test"]}
    assert kept.talk.post("/api/generate", body)["response"] == " Hello! I am a tiny"
    raw = {"model": "tiny", "prompt": "Hi", "raw": True, "stream": False}
    assert kept.talk.post("/api/generate", raw)["prompt_eval_count"] == 2


def test_json_and_schemas(kept: Kept) -> None:
    body: dict[str, Any] = {"model": "tiny", "messages": HI, "stream": False, "options": {"num_predict": 40}}
    free = kept.talk.post("/api/chat", {**body, "format": "json"})["message"]["content"]
    assert free.startswith("{")  # a model of no mind may not find the end of its string
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    content = kept.talk.post("/api/chat", {**body, "format": schema})["message"]["content"]
    assert isinstance(json.loads(content)["ok"], bool)


def test_tools(kept: Kept) -> None:
    tools = [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "The weather",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        }
    ]
    body: dict[str, Any] = {"model": "tool", "messages": HI, "tools": tools, "options": {"temperature": 0}}
    (call,) = kept.talk.post("/api/chat", {**body, "stream": False})["message"]["tool_calls"]
    assert call["function"] == {"index": 0, "name": "get_weather", "arguments": {"city": "Rome"}}
    streamed = [line["message"] for line in kept.talk.stream("/api/chat", body)]
    assert [one["function"]["name"] for line in streamed for one in line.get("tool_calls", ())] == [
        "get_weather"
    ]
    answered = [*HI, {"role": "assistant", "content": "", "tool_calls": [call]}]
    answered.append({"role": "tool", "content": "11 degrees", "tool_name": "get_weather"})
    assert kept.talk.post("/api/chat", {**body, "messages": answered, "stream": False})["done"]
    with pytest.raises(ServerFailed, match="does not take tools"):
        kept.talk.post("/api/chat", {**body, "model": "tiny"})


def test_a_prompt_over_the_context_is_refused_or_cut(kept: Kept) -> None:
    long = " ".join(f"word{number}" for number in range(400))
    body: dict[str, Any] = {"model": "tiny", "prompt": long, "stream": False}
    with pytest.raises(
        ServerFailed, match=r"the prompt has \d+ tokens and the context holds 512; .*truncate"
    ):
        kept.talk.post("/api/generate", body)
    cut = kept.talk.post("/api/generate", {**body, "truncate": True})
    assert cut["response"] == SENTENCE
    assert cut["truncated"]["prompt_tokens"] > 512 > cut["truncated"]["kept_tokens"]
    assert kept.talk.post("/api/generate", {**body, "raw": True, "truncate": True})["truncated"]
    old = [{"role": "user", "content": f"{long[:600]} {number}"} for number in range(9)]
    chat = kept.talk.post(
        "/api/chat", {"model": "tiny", "messages": [*old, *HI], "stream": False, "truncate": True}
    )
    assert chat["message"]["content"] == SENTENCE
    beside = {"model": "tiny", "messages": [{"role": "user", "content": long}, *HI], "stream": False}
    newest = kept.talk.post("/api/chat", {**beside, "truncate": True})
    assert newest["truncated"]["kept_tokens"] < 100  # the last message alone, which is short
    raised = {"model": "loop", "prompt": long, "stream": False, "options": {"num_ctx": 512}}
    with pytest.raises(ServerFailed, match=r"raise it with options.num_ctx \(at most 4096\)"):
        kept.talk.post("/api/generate", raised)
    raised["options"] = {"num_ctx": 4096, "num_predict": 3}
    assert kept.talk.post("/api/generate", raised)["eval_count"] == 3


def test_the_context_is_what_was_asked_and_trained(kept: Kept) -> None:
    for asks, holds in ((100_000, 512), (64, 64)):
        options = {"num_ctx": asks, "num_predict": 1}
        kept.talk.post(
            "/api/generate", {"model": "tiny", "prompt": "Hi", "stream": False, "options": options}
        )
        (one,) = [one for one in kept.talk.get("/api/ps")["models"] if one["name"] == "tiny:latest"]
        assert one["context_length"] == holds


def test_a_model_is_loaded_kept_and_unloaded(kept: Kept) -> None:
    loaded = kept.talk.post("/api/generate", {"model": "tiny", "keep_alive": -1})
    assert (loaded["done_reason"], loaded["response"]) == ("load", "")
    (one,) = [one for one in kept.talk.get("/api/ps")["models"] if one["name"] == "tiny:latest"]
    assert one["expires_at"].startswith("2318")
    assert "modified_at" not in one
    chat = kept.talk.post("/api/chat", {"model": "tiny", "messages": [], "keep_alive": "0"})
    assert chat["done_reason"] == "unload"
    assert "tiny:latest" not in [one["name"] for one in kept.talk.get("/api/ps")["models"]]
    kept.talk.post("/api/generate", {"model": "tiny", "prompt": "x", "stream": False, "keep_alive": 0})
    assert "tiny:latest" not in [one["name"] for one in kept.talk.get("/api/ps")["models"]]


def test_embeddings(kept: Kept) -> None:
    made = kept.talk.post("/api/embed", {"model": "tiny", "input": ["one", "two"]})
    assert [len(one) for one in made["embeddings"]] == [tiny.WIDTH] * 2
    assert made["prompt_eval_count"] > 1
    (short,) = kept.talk.post("/api/embed", {"model": "tiny", "input": "one", "dimensions": 8})["embeddings"]
    assert len(short) == 8
    assert kept.talk.post("/api/embed", {"model": "tiny", "input": []})["embeddings"] == []
    assert len(kept.talk.post("/api/embeddings", {"model": "tiny", "prompt": "x"})["embedding"]) == tiny.WIDTH
    cut = kept.talk.post("/api/embed", {"model": "tiny", "input": "word " * 900, "truncate": True})
    assert len(cut["embeddings"]) == 1


def test_what_is_said_of_models(kept: Kept) -> None:
    tags = {one["name"]: one for one in kept.talk.get("/api/tags")["models"]}
    assert {"tiny:latest", "loop:latest", "tool:latest"} <= set(tags)
    tiny_one = tags["tiny:latest"]
    assert set(tiny_one) == {"name", "model", "modified_at", "size", "digest", "details"}
    assert len(tiny_one["digest"]) == 64
    assert tiny_one["details"]["format"] == "gguf"
    shown = kept.talk.post("/api/show", {"model": "tool"})
    assert {"license", "modelfile", "parameters", "template", "details", "model_info"} <= set(shown)
    assert shown["license"] == "CC0-1.0"
    assert "im_start" in shown["template"]
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["model_info"]["general.architecture"] == "llama"
    assert asked(kept, "GET", "/") == (200, "Ollama is running")
    assert asked(kept, "HEAD", "/")[0] == 200
    assert "version" in kept.talk.get("/api/version")


def test_models_are_made_copied_and_deleted(kept: Kept, tmp_path: Path) -> None:
    data = tiny.model(pad=77)
    digest = hashlib.sha256(data).hexdigest()
    assert asked(kept, "HEAD", f"/api/blobs/sha256:{digest}")[0] == 404
    status, told = asked(kept, "POST", f"/api/blobs/sha256:{'0' * 64}", data)
    assert (status, "digest mismatch" in told["error"]) == (400, True)
    assert asked(kept, "POST", f"/api/blobs/sha256:{digest}", data)[0] == 201
    assert asked(kept, "HEAD", f"/api/blobs/sha256:{digest}")[0] == 200
    created = {"model": "me/made:q", "files": {"m.gguf": f"sha256:{digest}"}, "system": "Be brief"}
    created["parameters"] = {"num_predict": 2, "stop": ["x"]}
    steps = [line["status"] for line in kept.talk.stream("/api/create", created)]
    assert steps[-1] == "success"
    made = kept.talk.post("/api/generate", {"model": "me/made:q", "prompt": "Hi", "stream": False})
    assert made["eval_count"] == 2
    shown = kept.talk.post("/api/show", {"model": "me/made:q"})
    assert shown["system"] == "Be brief"
    assert "num_predict" in shown["parameters"]
    kept.talk.post("/api/copy", {"source": "me/made:q", "destination": "me/copy"})
    for name in ("me/made:q", "me/copy"):
        kept.talk.delete("/api/delete", {"model": name})
    assert asked(kept, "HEAD", f"/api/blobs/sha256:{digest}")[0] == 404
    assert asked(kept, "DELETE", "/api/delete", {"model": "me/made:q"})[0] == 404


V1 = ("chat/completions", "completions", "responses", "messages", "embeddings")


def test_v1_passes_byte_for_byte(kept: Kept) -> None:
    chat = {"model": "tiny", "messages": HI}
    assert (
        asked(kept, "POST", "/v1/chat/completions", chat)[1]["choices"][0]["message"]["content"] == SENTENCE
    )
    request = urllib.request.Request(
        f"{kept.url}/v1/chat/completions", json.dumps({**chat, "stream": True}).encode()
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        raw = answer.read()
    assert raw.endswith(b"data: [DONE]\n\n")
    assert raw.count(b"data: {") > 5
    status, said = asked(kept, "POST", "/v1/messages", {**chat, "max_tokens": 20})
    assert (status, said["content"][0]["text"]) == (200, SENTENCE)
    assert asked(kept, "POST", "/v1/responses", {"model": "tiny", "input": "Hi"})[1]["status"] == "completed"
    assert asked(kept, "POST", "/v1/completions", {"model": "tiny", "prompt": "Hi"})[0] == 200
    assert asked(kept, "POST", "/v1/embeddings", {"model": "tiny", "input": "Hi"})[0] == 200
    listed = asked(kept, "GET", "/v1/models")[1]["data"]
    assert {"tiny", "loop", "tool"} <= {one["id"] for one in listed}
    assert asked(kept, "GET", "/v1/models/tiny")[1]["object"] == "model"
    assert asked(kept, "GET", "/v1/models/nope")[0] == 404
    long = {"model": "tiny", "messages": [{"role": "user", "content": "word " * 600}]}
    status, told = asked(kept, "POST", "/v1/chat/completions", long)
    assert (status, told["error"]["type"]) == (400, "exceed_context_size_error")
    assert "options.num_ctx" in told["error"]["message"] or "holds no more" in told["error"]["message"]


@pytest.mark.parametrize("path", V1)
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"model": "tiny"}', b'{"model": 5}', b'{"model":"tiny","messages":[1]}'],
)
def test_a_wrong_body_of_v1_is_one_error(kept: Kept, path: str, body: bytes) -> None:
    status, told = asked(kept, "POST", f"/v1/{path}", body)
    assert status == 400
    assert set(told["error"]) == {"message", "type", "param", "code"}
    assert told["error"]["message"]


WRONG: list[tuple[str, Any]] = [
    ("/api/generate", {"prompt": "no model"}),
    ("/api/generate", {"model": ["tiny"]}),
    ("/api/generate", {"model": "../../etc"}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "keep_alive": "soon"}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "options": {"num_ctx": "many"}}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "options": {"temperature": []}}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "format": 5}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "images": ["aGVsbG8="]}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "suffix": "y"}),
    ("/api/generate", {"model": "tiny", "prompt": "x", "think": True}),
    ("/api/chat", {"model": "tiny", "messages": [{"role": "nobody", "content": "x"}]}),
    ("/api/chat", {"model": "tiny", "messages": "x"}),
    ("/api/chat", b'{"model":"tiny","messages":' + b"[" * 100_000),
    ("/api/embed", {"model": "tiny", "input": 5}),
    ("/api/show", {}),
    ("/api/copy", {"source": "tiny"}),
    ("/api/create", {"model": "x"}),
    ("/api/create", {"model": "x", "files": {"a": "sha256:" + "1" * 64}}),
    ("/api/create", {"model": "x", "from": "tiny", "template": "{{ .Prompt }}"}),
    ("/api/blobs/sha256:short", b"x"),
]


@pytest.mark.parametrize(("path", "body"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_body_is_one_error_and_holds_no_runner(kept: Kept, path: str, body: Any) -> None:
    status, told = asked(kept, "POST", path, body)
    assert status == 400, told
    assert list(told) == ["error"]
    assert kept.talk.post("/api/generate", {"model": "tiny", "keep_alive": 0})["done_reason"] == "unload"
    assert "tiny:latest" not in [one["name"] for one in kept.talk.get("/api/ps")["models"]]


def test_what_is_missing_or_absent_says_so(kept: Kept) -> None:
    assert asked(kept, "POST", "/api/generate", {"model": "nope", "prompt": "x"}) == (
        404,
        {"error": "model 'nope' not found"},
    )
    status, told = asked(kept, "POST", "/v1/chat/completions", {"model": "nope", "messages": HI})
    assert (status, told["error"]["message"]) == (404, "model 'nope' not found")
    status, told = asked(kept, "POST", "/api/push", {"model": "nope"})
    assert (status, "not in this version of svc" in told["error"]) == (501, True)
    assert asked(kept, "GET", "/nope")[0] == 404
    assert asked(kept, "PUT", "/api/tags")[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.com"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/api/tags"), ("POST", "/api/generate"), ("GET", "/nope")]
)
def test_a_foreign_page_is_refused(kept: Kept, headers: dict[str, str], method: str, path: str) -> None:
    status, told = asked(kept, method, path, {"model": "tiny"} if method == "POST" else None, **headers)
    assert status == 403
    assert "error" in told


def test_a_page_of_this_machine_may_ask(kept: Kept) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", kept.port, timeout=60)
    for method in ("OPTIONS", "GET"):
        connection.request(method, "/api/tags", headers={"Origin": "http://localhost:3000"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 204)
        assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    connection.close()
