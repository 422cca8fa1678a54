"""Sends requests to the local LLM server. Uses http.client, so that commands start fast."""

from __future__ import annotations

import http
import http.client
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from localstore.models.errors import ServerFailed

PROBE_SECONDS = 3.0
LONG_SECONDS = 3600.0  # for a model to load and to read a prompt
_BODY = 64 << 20
PortState = Literal["llm", "free", "foreign", "silent"]


def probe(port: int, seconds: float = PROBE_SECONDS) -> PortState:
    """Return the state of a port of this machine. It is `llm` if an LLM server answers, `free` if no program
    listens, and `silent` if a program does not answer in time or is still starting. It is `foreign` for any
    other program. `seconds` limits the wait for the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request("GET", "/api/tags")
        answer = connection.getresponse()
        if answer.status == http.HTTPStatus.SERVICE_UNAVAILABLE:
            return "silent"  # it starts
        document = msgspec.json.decode(answer.read(_BODY)) if answer.status == 200 else None
        return "llm" if isinstance(document, dict) and isinstance(document.get("models"), list) else "foreign"
    except ConnectionRefusedError:
        return "free"
    except TimeoutError:
        return "silent"
    except (OSError, http.client.HTTPException, msgspec.MsgspecError):
        return "foreign"
    finally:
        connection.close()


class Server:
    """Sends requests to the LLM server on a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str, seconds: float = 30.0) -> Any:
        with self._request("GET", path, seconds=seconds) as answer:
            return _decode_object(answer.read(_BODY))

    def post(self, path: str, body: dict[str, Any], seconds: float = LONG_SECONDS) -> Any:
        with self._request("POST", path, msgspec.json.encode(body), seconds) as answer:
            return _decode_object(answer.read(_BODY) or b"{}")

    def delete(self, path: str, body: dict[str, Any]) -> None:
        with self._request("DELETE", path, msgspec.json.encode(body), LONG_SECONDS) as answer:
            answer.read(_BODY)

    def stream(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request, and yield the JSON objects of its answer. The answer has one object in each line.
        Raises ServerFailed if an object is an error."""
        with self._request("POST", path, msgspec.json.encode(body), LONG_SECONDS) as answer:
            while line := answer.readline(_BODY):
                if not line.strip():
                    continue
                event = _decode_object(line)
                if "error" in event:
                    raise ServerFailed(str(event["error"]))
                yield event

    def has_blob(self, digest: str) -> bool:
        with suppress(ServerFailed), self._request("HEAD", f"/api/blobs/sha256:{digest}"):
            return True
        return False

    def send_blob(self, digest: str, file: Path) -> None:
        """Upload a file of a model. `digest` is its SHA-256."""
        with file.open("rb") as body:
            headers = {"Content-Length": str(os.fstat(body.fileno()).st_size)}
            with self._request("POST", f"/api/blobs/sha256:{digest}", body, LONG_SECONDS, headers) as answer:
                answer.read(_BODY)

    @contextmanager
    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        seconds: float = 30.0,
        headers: dict[str, str] | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _failure_of(answer.read(_BODY), answer.status)
            yield answer
        except TimeoutError:
            raise ServerFailed(
                f"the local LLM server on port {self.port} did not answer within {seconds:.0f} seconds; see: "
                "svc llm logs"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(
                f"the local LLM server on port {self.port} cannot be reached ({error}); start it: "
                "svc llm start"
            ) from None
        finally:
            connection.close()


def _decode_object(data: bytes) -> Any:
    try:
        document = msgspec.json.decode(data)
    except msgspec.MsgspecError:
        raise ServerFailed(
            "the local LLM server answered something that is no JSON; see: svc llm logs"
        ) from None
    if not isinstance(document, dict):
        raise ServerFailed("the local LLM server answered something unexpected; see: svc llm logs")
    return document


def _failure_of(data: bytes, status: int) -> ServerFailed:
    with suppress(msgspec.MsgspecError, ServerFailed):
        error = _decode_object(data).get("error")
        if isinstance(error, str) and error:
            return ServerFailed(error)
    return ServerFailed(f"the local LLM server answered {status}")
