from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.errors import Invalid
from localstore.core.limits import APP_FILE_CLAMP, BLOB_FILE, CHUNKED_FILE, MANIFEST_BYTES, MIB
from localstore.core.manifest import RepoManifest, parse

FULL = b"""
kind: app
name: Notes
depends: [Alice/toolkit, bob/lib]
models: [llama3.2, "qwen:7b", llama3.2]
ollama_port_override: 11500
ollama_tag: llama3.2:1b
limits: {max_file_mib: 64, later: [1, 2]}
something_new: {a: [b]}
"""


def test_reads_every_member_and_leaves_unknown_keys() -> None:
    assert parse(FULL) == RepoManifest(
        kind="app",
        name="Notes",
        depends=("alice/toolkit", "bob/lib"),
        models=("llama3.2", "qwen:7b"),
        ollama_port_override=11500,
        ollama_tag="llama3.2:1b",
        max_file_mib=64,
    )


@pytest.mark.parametrize(
    "data", [b"", b"\n# nothing\n", b"{}", b"kind:\nmodels: null\nlimits: ~\n", b"\xef\xbb\xbfother: 1"]
)
def test_nothing_given(data: bytes) -> None:
    assert parse(data) == RepoManifest()


@pytest.mark.parametrize(
    ("mib", "kind", "cap"),
    [
        (64, "app", 64 * MIB),
        (500, "app", APP_FILE_CLAMP),
        (1, "app", BLOB_FILE),
        (64, "lib", BLOB_FILE),
        (64, "model", CHUNKED_FILE),
    ],
)
def test_file_cap(mib: int, kind: str, cap: int) -> None:
    assert parse(b"limits: {max_file_mib: %d}" % mib).file_cap(kind) == cap
    assert RepoManifest().file_cap(kind) == (CHUNKED_FILE if kind == "model" else BLOB_FILE)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"kind: game", "kind must be one of"),
        (b"kind: [app]", "kind must be"),
        (b"name: 'a\\nb'\nname: \"a\\nb\"", "name must be a line"),
        (b"depends: alice/x", "depends must be a list"),
        (b"depends: [../x]", "depends must be a list of OWNER/NAME"),
        (b"depends: [example.org/a/b]", "without a host"),
        (b"models: {a: 1}", "models must be a list"),
        (b"models: [[a]]", "models must be a line"),
        (b"ollama_port_override: 0", "from 1 to 65535"),
        (b"ollama_port_override: 65536", "from 1 to 65535"),
        (b"ollama_port_override: 1e4", "from 1 to 65535"),
        (b"limits: {max_file_mib: -1}", r"limits\.max_file_mib must be a whole number"),
        (b"limits: [1]", "limits must be a mapping"),
        (b"- a", "must be a mapping"),
        (b"just text", "must be a mapping"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a: \x01", "characters"),
        (b"a: b: c", "line 1"),
        (b"? [a]\n: b", "not valid YAML"),
        (b"a: 1\n---\nb: 2", "not valid YAML"),
        (b"a: &x [1]\nb: *x", "aliases"),
        (b"[" * 60_000, "nested deeper"),
        (b"a: " + b"x" * MANIFEST_BYTES, "larger than"),
    ],
)
def test_bad_manifests_are_one_clear_error(data: bytes, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        parse(data)


def test_yaml_tags_build_nothing() -> None:
    assert parse(b"x: !!python/name:os.system a") == RepoManifest()


@given(st.binary(max_size=60) | st.text("[]{}:-?&*!|>'\"%@`#, \nab~", max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        assert isinstance(parse(data), RepoManifest)
    except Invalid as refused:
        assert refused.detail
