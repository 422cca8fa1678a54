"""The front's answers about models: /api/tags, /api/show, /api/ps and /v1/models."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, datetime
from typing import Any

import msgspec

from llm.answering import capabilities, template_of
from llm.runners import Runner
from localstore.core.times import rfc3339
from localstore.models.store import Installed

_FAR = datetime(2318, 1, 1, tzinfo=UTC)  # what stays for ever expires then, as Ollama has it


def parameter_size(count: int) -> str:
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if count >= unit:
            return f"{count / unit:.1f}{name}" if name == "B" else f"{count / unit:.2f}{name}"
    return str(count)


def details(installed: Installed) -> dict[str, Any]:
    header = installed.about.header
    family = header.architecture
    return {
        "parent_model": "",
        "format": "gguf",
        "family": family,
        "families": [family, "clip"] if installed.projector else [family],
        "parameter_size": parameter_size(installed.parameters),
        "quantization_level": header.quantisation,
    }


def digest(installed: Installed) -> str:
    """The digest by which clients recognise a model. If the model's name stands for a file alone, it is the
    digest of the file. If the name adds something, such as parameters, it is the digest of the `Record` in
    which the name is stored. So two names of one file with different parameters have different digests."""
    record = msgspec.structs.replace(installed.record, source=None)
    if record == type(record)(model=record.model, modified_at=record.modified_at):
        return record.model
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def tag(installed: Installed) -> dict[str, Any]:
    name = str(installed.name)
    return {
        "name": name,
        "model": name,
        "modified_at": installed.record.modified_at,
        "size": installed.size,
        "digest": digest(installed),
        "details": details(installed),
    }


def running(runner: Runner) -> dict[str, Any]:
    installed = runner.installed
    end = runner.expires_at
    expires = _FAR if end == math.inf else end
    tags = {name: value for name, value in tag(installed).items() if name != "modified_at"}
    return {
        **tags,
        "size": runner.plan.need,
        "expires_at": rfc3339(expires, "microseconds"),
        "size_vram": 0,
        "context_length": runner.plan.context,
    }


def show(installed: Installed, path: str) -> dict[str, Any]:
    """The answer of /api/show about an installed model. `path`: the file of the model, which the Modelfile in
    the answer names."""
    header, record = installed.about.header, installed.record
    info = {name: value for name, value in header.fields.items() if name != "tokenizer.chat_template"}
    info["general.parameter_count"] = installed.parameters
    parameters = [
        (name, msgspec.json.encode(item).decode())
        for name, value in record.parameters.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    template = template_of(installed)
    file = f"# {installed.name}\nFROM {path}\n"
    file += "".join(f"PARAMETER {name} {value}\n" for name, value in parameters)
    file += f'SYSTEM """{record.system}"""\n' if record.system else ""
    return {
        "license": record.license if record.license is not None else header.text("general.license"),
        "modelfile": file,
        "parameters": "\n".join(f"{name:<30} {value}" for name, value in parameters),
        "template": template,
        **({"system": record.system} if record.system else {}),
        "details": details(installed),
        "model_info": info,
        "capabilities": capabilities(installed),
        "modified_at": record.modified_at,
    }


def of_openai(installed: Installed) -> dict[str, Any]:
    created = datetime.fromisoformat(installed.record.modified_at).timestamp()
    owner = installed.name.owner or "library"
    return {"id": installed.name.short, "object": "model", "created": int(created), "owned_by": owner}
