"""Which files a tag means."""

from __future__ import annotations

import pytest

from localstore.core import manifest as manifests
from localstore.models.errors import NoSuchModel
from localstore.record.database import SealedFile
from svc.flows.models.choosing import Choice, OtherModel, choose

FILES = [
    "README.md", "qwen-Q4_K_M.gguf", "qwen-IQ4_K_M.gguf", "qwen-q8_0.gguf", "mmproj-f16.gguf",
    "big/qwen-f16-00001-of-00002.gguf", "big/qwen-f16-00002-of-00002.gguf", "big/other-00001-of-00002.gguf",
    "vision/one.gguf", "vision/mmproj-one-f32.gguf", "vision/mmproj-one-f16.gguf",
]  # fmt: skip
SHARDS = ["big/qwen-f16-00001-of-00002.gguf", "big/qwen-f16-00002-of-00002.gguf"]


def chosen(tag: str, yaml: str = "", files: list[str] = FILES) -> Choice | OtherModel:
    tree = {path: SealedFile("chunked", bytes(32), 1) for path in files}
    return choose(tree, manifests.parse(yaml.encode()), tag, "alice/qwen")


@pytest.mark.parametrize(
    ("tag", "files", "projector"),
    [
        ("q4_k_m", ["qwen-Q4_K_M.gguf"], "mmproj-f16.gguf"),
        ("Q8_0", ["qwen-q8_0.gguf"], "mmproj-f16.gguf"),
        ("qwen-q8_0", ["qwen-q8_0.gguf"], "mmproj-f16.gguf"),
        ("f16", SHARDS, None),
        ("big", SHARDS, None),
        ("vision", ["vision/one.gguf"], "vision/mmproj-one-f16.gguf"),
    ],
)
def test_a_tag_is_the_end_of_a_stem_or_a_folder(tag: str, files: list[str], projector: str | None) -> None:
    assert chosen(tag) == Choice(files, projector)


def test_without_a_tag_the_manifest_says_or_there_is_one() -> None:
    assert chosen("latest", "default_model: q8_0") == Choice(["qwen-q8_0.gguf"], "mmproj-f16.gguf")
    assert chosen("latest", "default_model: vision/one.gguf\nmodels: [q8_0]").files == ["vision/one.gguf"]
    assert chosen("latest", "models: [q8_0, f16]") == Choice(["qwen-q8_0.gguf"], "mmproj-f16.gguf")
    assert chosen("latest", files=["a.gguf"]) == Choice(["a.gguf"], None)
    assert chosen("latest", "default_model: bob/llama:q4") == OtherModel("bob/llama:q4")
    assert chosen("latest", "models: [bob/llama:q4]") == OtherModel("bob/llama:q4")
    assert chosen("q4", "models: [bob/llama:q4]") == OtherModel("bob/llama:q4")
    assert chosen("llama", "models: [bob/llama]") == OtherModel("bob/llama")


@pytest.mark.parametrize(
    ("tag", "yaml", "files", "sentence"),
    [
        ("latest", "", FILES, r"has several models; name one: alice/qwen:qwen-f16, alice/qwen:qwen-IQ4_K_M"),
        ("latest", "", ["README.md"], "has no model: no file of it ends in .gguf"),
        ("latest", "default_model: q5", FILES, "has no model 'q5'; it has alice/qwen:"),
        ("q5", "", FILES, "has no model 'q5'"),
        ("K_M", "", FILES, "means several models"),
        ("other", "", FILES, "has no model 'other'"),
        ("f16", "", FILES[5:6], "no file of it ends in"),
    ],
)
def test_what_a_tag_does_not_say_is_asked_for(tag: str, yaml: str, files: list[str], sentence: str) -> None:
    with pytest.raises(NoSuchModel, match=sentence):
        chosen(tag, yaml, files)
