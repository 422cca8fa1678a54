"""The process that compares texts for a relay. It reads calls from stdin, one at a time, and writes their
results to stdout, each with its length before it. It ends when stdin ends.

It imports only `localstore.core`, so that it starts fast and stays small, and it runs at a lower priority
than the relay.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import sys
import time
from typing import Any, BinaryIO

LENGTH = struct.Struct("!Q")
GIVE_WAY = 10  # of the 20 steps by which a process can be nicer than others


def frame(value: Any) -> bytes:
    raw = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(raw)) + raw


def serve(calls: BinaryIO, results: BinaryIO) -> None:
    """Answer calls until the input ends. A call is (function, arguments); its answer is (result, None, CPU
    seconds) or (None, error, CPU seconds). Both sides run the same program, so pickles are safe here."""
    while len(head := calls.read(LENGTH.size)) == LENGTH.size:
        raw = calls.read(LENGTH.unpack(head)[0])
        began = time.process_time()
        try:
            call, arguments = pickle.loads(raw)  # noqa: S301  # from the relay that started this process
            answer: tuple[Any, Exception | None] = call(*arguments), None
        except Exception as error:
            answer = None, error
        results.write(frame((*answer, time.process_time() - began)))
        results.flush()


def main() -> None:
    with contextlib.suppress(OSError):
        os.nice(GIVE_WAY)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints is no result
    with contextlib.suppress(KeyboardInterrupt):  # ^C at the terminal is for the relay, which closes stdin
        serve(sys.stdin.buffer, results)


if __name__ == "__main__":
    main()
