"""A process that renders one job after the other: `python -m relay.render.worker`.

On stdin and stdout each message is its length, four bytes big-endian, and msgpack. An empty message on stdout
says that the process is ready for jobs. The process ends when stdin ends, or when nobody reads its answers.
It limits its own memory; its parent limits its time by killing it.
"""

from __future__ import annotations

import resource
import signal
import sys
from typing import BinaryIO

import msgspec

from relay.render import highlight, markdown
from relay.render.jobs import HTML_CHARS, Job, Links, MarkdownJob, Rendered, SourceJob

MEMORY = 512 * 1024 * 1024


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a relay that was killed reads no answers
    # The first text costs some hundred milliseconds: what lexers there are is read then.
    render(MarkdownJob("```python\nwarm = True\n```\n", Links("", "", "", "")))
    render(SourceJob("warm = True\n", "warm.py"))
    sys.stdout.buffer.write(bytes(4))
    sys.stdout.buffer.flush()
    serve(sys.stdin.buffer, sys.stdout.buffer)


def serve(jobs: BinaryIO, answers: BinaryIO) -> None:
    """Read jobs and write their answers until the input ends."""
    decoder = msgspec.msgpack.Decoder(Job)
    while len(head := jobs.read(4)) == 4:
        job = decoder.decode(jobs.read(int.from_bytes(head)))
        raw = msgspec.msgpack.encode(render(job))
        answers.write(len(raw).to_bytes(4) + raw)
        answers.flush()


def render(job: MarkdownJob | SourceJob) -> Rendered:
    """Do a job and return its result. `html` of the result is None if the libraries fail, or if the result is
    too long to send."""
    try:
        if isinstance(job, MarkdownJob):
            html = [markdown.to_html(job.text, job.links)]
        else:
            html = highlight.lines_of(job.text, job.name)
        return Rendered(html if sum(map(len, html)) <= HTML_CHARS else None)
    except (RecursionError, MemoryError, ValueError, IndexError, KeyError):
        return Rendered(None)


if __name__ == "__main__":
    main()
