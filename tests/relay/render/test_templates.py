"""Templates are compiled in a thread, once for a process, and while that goes on others are answered."""

from __future__ import annotations

import asyncio

from relay.render import templates
from relay.render.templates import Templates
from tests.patience import PATIENCE
from tests.relay.conftest import Relay


async def test_the_loop_goes_on_while_templates_are_compiled() -> None:
    templates.make_environment.cache_clear()
    compiling = asyncio.create_task(Templates().ready())
    turns = 0
    while not compiling.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 10, "compiled in the loop it would be two"
    names = {name for _, name in templates.make_environment().cache or ()}
    assert {"base.html", "login.html", "repository/talk.html", "repository/settings.html"} <= names


async def test_readers_who_leave_do_not_stop_it_for_others() -> None:
    all_templates = Templates()
    gone, stays = (asyncio.create_task(all_templates.ready()) for _ in range(2))
    await asyncio.sleep(0)
    gone.cancel()
    async with asyncio.timeout(PATIENCE):
        await stays
        await all_templates.ready()


async def test_a_node_compiles_them_by_itself_and_one_that_ends_early_does_not() -> None:
    early, late = Templates(), Templates()
    early.start(after=0)
    late.start(after=3600)
    async with asyncio.timeout(PATIENCE):
        while len(early._compiling) < 2 or not all(task.done() for task in early._compiling.values()):
            await asyncio.sleep(0.01)
    await early.close()
    await late.close()
    assert late._compiling == {}


def test_the_first_page_waits_for_the_templates(relay: Relay) -> None:
    with relay.client() as http:
        assert http.get("/auth/login").status_code == 200
        assert relay.node.templates._compiling[""].done()
        assert http.get("/").status_code == 200
    assert all(task.done() for task in relay.node.templates._compiling.values())
    assert len(relay.node.templates._compiling) == 2
