"""Uploads packs. It reports during the upload how many bytes were sent, because one pack takes minutes on a
slow line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from localstore.core.model.limits import KIB
from localstore.core.storage.pack import Pack
from localstore.sync.working_copy import WorkingCopy

REPORTED_BYTES = 64 * KIB  # sent between two reports


class ReportedPack(Pack, frozen=True):
    """A pack that reports how many of its bytes were read. Each attempt to send it begins again at 0."""

    report: Callable[[int], None]

    def parts(self) -> Iterator[bytes]:
        taken = 0
        for part in Pack.parts(self):
            for start in range(0, len(part), REPORTED_BYTES):
                piece = part[start : start + REPORTED_BYTES]
                yield piece
                taken += len(piece)
                self.report(taken)


class PackUploads:
    """Uploads packs. `total`: how many objects all packs have together. `sent`: how many bytes were sent so
    far. `stored`: how many of the objects the relay has."""

    def __init__(self, copy: WorkingCopy, total: int) -> None:
        self._copy, self._total = copy, total
        self.sent = self.stored = 0

    def send(self, packs: Iterable[Pack]) -> None:
        for pack in packs:
            self._copy.transport.upload_pack(ReportedPack(pack.toc, pack.frames, self._report))
            self.sent += pack.size
            self.stored += sum(len(frame.row.objects) for frame in pack.frames)
            self._report(0)

    def _report(self, taken: int) -> None:
        self._copy.progress("upload", self.stored, self._total, self.sent + taken)
