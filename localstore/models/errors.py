"""Errors about models, the local LLM server and apps that need them; raised on this machine only."""

from __future__ import annotations

from localstore.core.errors import ClientError


class BadModel(ClientError):
    """The file is not a GGUF model that svc can read."""

    code = "bad_model"


class ModelMissing(ClientError):
    """No model of this name is on this machine."""

    code = "model_missing"

    def __init__(self, name: str) -> None:
        super().__init__(f"model '{name}' not found; pull it: svc llm pull NAME, or its file")


class ModelChanged(ClientError):
    """The file of a model was changed in place after it was pulled."""

    code = "model_changed"

    def __init__(self, name: str, source: str) -> None:
        super().__init__(
            f"the file of model '{name}' was changed in place after it was pulled ({source}), so it is not "
            "loaded; pull it again: svc llm pull FILE.gguf",
        )


class NoSuchModel(ClientError):
    """The repository or registry has no model of this name."""

    code = "no_such_model"


class RegistryFailed(ClientError):
    """A registry of models did not answer, or broke the protocol in its answer."""

    code = "registry_failed"


class PortHeld(ClientError):
    """Another program holds the port of the local LLM server."""

    code = "port_held"


class ServerFailed(ClientError):
    """The local LLM server did not start, or it answered with an error."""

    code = "llm_server"


class AppMissing(ClientError):
    """No app of this name is on this machine."""

    code = "app_missing"


class NoLaunch(ClientError):
    """The folder has no instructions for starting its app."""

    code = "no_launch"


class AppFailed(ClientError):
    """The app did not start, or did not become ready."""

    code = "app_failed"

    def __init__(self, detail: str, logged: str = "") -> None:
        """`detail`: a sentence about the failure. `logged`: the name of the app, if its log has the
        output."""
        super().__init__(f"{detail}; see: svc app logs {logged}" if logged else detail)
