"""A process that renders one job after the other: `python -m relay.render.worker`.

On stdin and stdout each message is its length, four bytes big-endian, and msgpack. The process ends when
stdin ends, or nobody reads its answers. It limits its own memory; its parent limits its time by killing it.
"""

from __future__ import annotations

import resource
import signal
import sys
from typing import BinaryIO

import msgspec

from relay.render import highlight, markdown
from relay.render.jobs import Job, MarkdownJob, Rendered, SourceJob

MEMORY = 512 * 1024 * 1024


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a relay that was killed reads no answers
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Answer jobs until the input ends."""
    decoder = msgspec.msgpack.Decoder(Job)
    while len(head := jobs.read(4)) == 4:
        job = decoder.decode(jobs.read(int.from_bytes(head)))
        raw = msgspec.msgpack.encode(render(job))
        answers.write(len(raw).to_bytes(4) + raw)
        answers.flush()


def render(job: MarkdownJob | SourceJob) -> Rendered:
    """The result of a job; empty if the libraries fail."""
    try:
        if isinstance(job, MarkdownJob):
            return Rendered([markdown.to_html(job.text, job.links)])
        return Rendered(highlight.lines_of(job.text, job.name))
    except (RecursionError, MemoryError, ValueError, IndexError, KeyError):
        return Rendered(None)


if __name__ == "__main__":
    main()
