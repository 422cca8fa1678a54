"""Everything that a push sends is signed by this machine's key, and nothing of a sign-in lies about."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.keys import key_id, verify
from localstore.core.lane.update import signing_bytes
from localstore.core.model.live import Bootstrap, BootstrapRequest, UpdateAnswers, UpdateBatch
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from svc.api.sync_transport import BranchTransport
from svc.http.session import Sessions
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made


def flipped(batch: UpdateBatch) -> bytes:
    """The same request with one bit of its first signature turned over."""
    (first, *others) = batch.updates
    signature = bytearray(unb64u(first.signature))
    signature[7] ^= 1
    wrong = msgspec.structs.replace(first, signature=b64u(bytes(signature)))
    return msgspec.json.encode(msgspec.structs.replace(batch, updates=[wrong, *others]))


class Wire:
    """What the folder's commands send, and the prepared bytes they sign."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.branch_id = ""
        self.batches: list[UpdateBatch] = []
        self.prepared: list[Prepared] = []
        self.finalized: list[FinalizeRequest] = []
        known, updates = BranchTransport.bootstrap, BranchTransport.updates
        prepare, finalize = BranchTransport.prepare, BranchTransport.finalize

        def met(transport: BranchTransport, body: BootstrapRequest) -> Bootstrap:
            answer = known(transport, body)
            self.branch_id = answer.branch_id
            return answer

        def sent(transport: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
            self.batches.append(batch)
            return updates(transport, batch)

        def asked(transport: BranchTransport, body: PrepareRequest) -> Prepared:
            self.prepared.append(prepare(transport, body))
            return self.prepared[-1]

        def signed(transport: BranchTransport, body: FinalizeRequest) -> object:
            self.finalized.append(body)
            return finalize(transport, body)

        monkeypatch.setattr(BranchTransport, "bootstrap", met)
        monkeypatch.setattr(BranchTransport, "updates", sent)
        monkeypatch.setattr(BranchTransport, "prepare", asked)
        monkeypatch.setattr(BranchTransport, "finalize", signed)


def test_every_update_and_every_seal_is_signed_by_the_registered_key(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alice, "app", "signed")
    wire = Wire(monkeypatch)
    for text in ("one\n", "one\ntwo\n"):
        Path("a.txt").write_text(text)
        Path("b.bin").write_bytes(b"\0" + text.encode())
        assert alice("push", "-m", "work").code == 0
    Path("b.bin").unlink()
    assert alice("push", "-m", "less").code == 0
    (key,) = json.loads(alice("auth", "device", "list", "--json", "id,public_key").out)
    public = unb64u(key["public_key"])
    assert key_id(public) == key["id"]
    link = json.loads(Path(".svc/repo.json").read_text())
    kinds = set()
    for batch in wire.batches:
        assert batch.device_key_id == key["id"]
        for update in batch.updates:
            kinds.add(update.kind)
            raw = signing_bytes(link["repo_id"], wire.branch_id, batch.replica, key["id"], update)
            assert verify(public, raw, unb64u(update.signature))
    assert kinds == {"create_text", "edit_text", "set_blob", "delete"}
    assert len(wire.finalized) == 3
    for prepared, body in zip(wire.prepared, wire.finalized, strict=True):
        seals.verify(unb64u(prepared.bytes), unb64u(body.signature), public)


def test_a_recorded_update_with_one_bit_flipped_is_refused(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alice, "app", "flipped")
    wire = Wire(monkeypatch)
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "work").code == 0
    (batch,) = wire.batches
    Path("batch.json").write_bytes(flipped(batch))
    link = json.loads(Path(".svc/repo.json").read_text())
    path = f"/api/v1/repos/{link['repo_id']}/branches/main/live/updates"
    refused = alice("repo", "api", "-X", "POST", path, "--input", "batch.json")
    assert refused.code == 1
    assert "is not signed by this device key" in refused.out + refused.err


def test_no_password_or_token_is_kept_in_the_terminal(alice: Svc) -> None:
    home = Path(os.environ["SVC_HOME"])
    session = Sessions(home).find(os.environ["SVC_SERVER"])
    assert session is not None
    secret = session.token.encode()
    assert len(secret) > 200
    said = [
        alice(*words)
        for words in (("auth", "status"), ("auth", "status", "--json"), ("auth", "token", "list"))
    ]
    assert not any(secret.decode() in answer.out + answer.err for answer in said)
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not [path for path in files if secret in path.read_bytes()]
    assert not [name for name, value in os.environ.items() if secret.decode() in value]
    shown = [*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")]
    assert not [path for path in shown if secret in readable(path)]


def readable(path: Path) -> bytes:
    """Nothing of a process that is not ours, or that has ended meanwhile."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_an_edit_whose_text_another_repository_holds_already_is_sealed(alice: Svc) -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        os.chdir(name)
        assert alice("repo", "create", name).code == 0
        assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/{name}").code == 0
        for text in ("first\n", "first\nand the same edit in both\n"):
            Path("a.txt").write_text(text)
            told = alice("push", "-m", "x")
            assert told.code == 0, told.err
        os.chdir("..")
