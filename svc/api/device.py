"""Device keys of the signed-in account."""

from __future__ import annotations

from collections.abc import Iterator

from localstore.core.model.auth import Challenge, DeviceKey, DeviceKeyPatch, DeviceKeyProof, DeviceKeyStart
from svc.http.client import Http
from svc.http.target import segment

ROOT = "/api/v1/repos"


class DeviceCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, limit: int | None = None) -> Iterator[DeviceKey]:
        """Registered keys, revoked ones too."""
        return self._http.pages(f"{ROOT}/device-keys", DeviceKey, limit=limit)

    def challenge(self, body: DeviceKeyStart) -> Challenge:
        return self._http.call("POST", f"{ROOT}/device-key-challenges", Challenge, body=body, creates=True)

    def register(self, body: DeviceKeyProof) -> DeviceKey:
        return self._http.call("POST", f"{ROOT}/device-keys", DeviceKey, body=body, creates=True)

    def rename(self, key_id: str, name: str) -> DeviceKey:
        body = DeviceKeyPatch(name=name)
        return self._http.call("PATCH", f"{ROOT}/device-keys/{segment(key_id)}", DeviceKey, body=body)

    def revoke(self, key_id: str) -> None:
        """The key signs nothing any more and its sessions end; what it sealed stays valid."""
        self._http.do("DELETE", f"{ROOT}/device-keys/{segment(key_id)}")
