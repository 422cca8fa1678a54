"""Rendering in processes: what takes too long is given up, and the next text is rendered all the same."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from relay.render import workers as rendering
from relay.render.jobs import MARKDOWN_BYTES, SOURCE_LINES, Links, MarkdownJob, Rendered, SourceJob
from relay.render.renderer import Renderer
from relay.render.workers import RenderWorkers
from tests.patience import PATIENCE
from tui.lexing import BY_LANGUAGE, HEAD

LINKS = Links("", "/page?path=", "/raw/", "/page")
ENDLESS = SourceJob("(" * 30_000, "Makefile")  # keeps the lexer of Makefiles busy for minutes


@pytest_asyncio.fixture
async def workers() -> AsyncIterator[RenderWorkers]:
    workers = RenderWorkers()
    yield workers
    await workers.close()


async def test_a_text_is_rendered(workers: RenderWorkers) -> None:
    source = ["a = <i class=m>1</i>", "", "b = <i class=m>2</i>"]
    assert await workers.render(MarkdownJob("*a*", LINKS)) == Rendered(["<p><em>a</em></p>\n"])
    assert await workers.render(SourceJob("a = 1\n\nb = 2\n", "x.py")) == Rendered(source)


@pytest.mark.parametrize("module", ["relay.render.worker", "tui.lexing"])
def test_a_process_whose_answers_nobody_reads_ends_in_silence(module: str) -> None:
    """As after a kill of whoever asked."""
    job = msgspec.msgpack.encode(SourceJob("a = 1", "x.py"))
    question = len(job).to_bytes(4) + job
    if module == "tui.lexing":
        question = HEAD.pack(BY_LANGUAGE, 6, 5) + b"python" + b"a = 1"
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(question, PATIENCE)
    assert errors == b""


async def test_a_text_that_keeps_a_lexer_busy_is_given_up_and_the_next_one_is_not(
    workers: RenderWorkers,
) -> None:
    await workers.render(SourceJob("a", "x.py"))  # a process has started
    assert await workers.render(ENDLESS) == Rendered(None)
    assert await workers.render(SourceJob("1", "x.py")) == Rendered(["<i class=m>1</i>"])


async def test_the_first_text_of_a_process_has_no_more_time(
    workers: RenderWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "STARTS_WITHIN", 3600.0)
    async with asyncio.timeout(PATIENCE):
        assert await workers.render(ENDLESS) == Rendered(None)


async def test_a_process_that_does_not_start_is_ended(
    workers: RenderWorkers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "STARTS_WITHIN", 0.0)
    assert await workers.render(SourceJob("1", "x.py")) is None
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    assert await workers.render(SourceJob("1", "x.py")) is None


async def test_who_leaves_takes_the_process_along(workers: RenderWorkers) -> None:
    await workers.render(SourceJob("a", "x.py"))
    asking = asyncio.create_task(workers.render(ENDLESS))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    answers = await asyncio.gather(*(workers.render(SourceJob(str(n), "x.py")) for n in range(20)))
    assert answers == [Rendered([f"<i class=m>{n}</i>"]) for n in range(20)]


async def test_what_was_rendered_is_kept_also_that_it_cannot_be() -> None:
    renderer = Renderer()
    try:
        assert await renderer.source("a", "x.py") == ["a"]
        assert await renderer.source(ENDLESS.text, ENDLESS.name) is None
        await renderer.close()
        renderer._workers = RenderWorkers(0)  # nothing can be rendered any more
        assert await renderer.source("a", "x.py") == ["a"]
        assert await renderer.source(ENDLESS.text, ENDLESS.name) is None
        assert await renderer.source("b", "x.py") is None
        renderer._workers = RenderWorkers()  # that nothing could be rendered then is not kept
        assert await renderer.source("b", "x.py") == ["b"]
    finally:
        await renderer.close()


async def test_a_result_that_is_too_long_is_none(workers: RenderWorkers) -> None:
    numbers = "#1 " * (MARKDOWN_BYTES // 3)
    assert await workers.render(MarkdownJob(numbers[:3000], LINKS)) != Rendered(None)
    assert await workers.render(MarkdownJob(numbers, LINKS)) == Rendered(None)


async def test_a_process_stands_ready_and_ends_with_the_node() -> None:
    renderer = Renderer()
    renderer.start(after=0)
    async with asyncio.timeout(PATIENCE):
        while not renderer._workers._idle:
            await asyncio.sleep(0.02)
    (process,) = renderer._workers._idle
    assert await renderer.source("a", "x.py") == ["a"]
    assert renderer._workers._idle == [process], "the first text needed no other one"
    await renderer.close()
    assert process.returncode is not None


async def test_a_node_that_ends_early_starts_no_process() -> None:
    renderer = Renderer()
    renderer.start(after=3600)
    await renderer.close()
    assert renderer._workers._idle == []


async def test_long_texts_are_not_tried() -> None:
    renderer = Renderer()
    renderer._workers = RenderWorkers(0)
    assert await renderer.source("\n" * (SOURCE_LINES + 1), "x.py") is None
    assert await renderer.markdown("a" * 300_000, LINKS) is None
