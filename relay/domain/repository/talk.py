"""Data of the pages of issues, proposals, runs and releases."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from localstore.core.errors import NotFound
from localstore.core.model.base import PageQuery
from localstore.core.model.check import SealChecks
from localstore.core.model.issue import Comment, Issue
from localstore.core.model.limits import KIB
from localstore.core.model.proposal import Proposal
from localstore.core.model.review import Review
from localstore.core.model.thread import Thread, ThreadQuery
from localstore.core.numbers import whole_number
from localstore.core.words import reasons_to_wait
from relay.domain.checks import check
from relay.domain.discussion import comment, issue
from relay.domain.proposal import proposal, review
from relay.domain.proposal import thread as line_threads
from relay.domain.repository.place import ShownRepository

COMMENTS, REVIEWS, THREADS = 100, 50, 10  # of one page
CHARS = 1024 * KIB  # of the rendered texts of one page; the last of them may be longer
SECONDS = 2.0  # in which the texts of one page are rendered


@dataclass(slots=True)
class Text:
    """A text that somebody wrote. `html`: the rendered text. If it is None, the text is shown as it is."""

    raw: str
    html: str | None


@dataclass(slots=True)
class Talk:
    """An issue or proposal with its first comments. `more`: whether there are further comments. `threads`:
    the first open threads of a proposal."""

    subject: Issue | Proposal
    body: Text
    comments: list[tuple[Comment, Text]]
    more: bool
    reviews: list[tuple[Review, Text]] = field(default_factory=list)
    checks: SealChecks | None = None
    threads: list[Thread] = field(default_factory=list)

    @property
    def entries(self) -> list[tuple[Comment | Review, Text]]:
        """The comments, and the reviews that were not dismissed, in the order in which they were written."""
        reviews = [entry for entry in self.reviews if entry[0].dismissed_at is None]
        return sorted([*self.comments, *reviews], key=lambda entry: entry[0].created_at)

    @property
    def is_proposal(self) -> bool:
        return isinstance(self.subject, Proposal)

    @property
    def waits(self) -> list[str]:
        """The reasons, in words, why a proposal cannot be merged yet."""
        if not isinstance(self.subject, Proposal):
            return []
        codes = [*(["draft"] if self.subject.draft else []), *self.subject.blocked_by]
        return reasons_to_wait(codes, self.subject.needs.approvals, self.subject.needs.missing)


async def find(place: ShownRepository, number: str) -> Talk:
    """The issue or proposal with this number, and its comments. Raises NotFound."""
    subject = await find_subject(place, number)
    page = await comment.page(place.view, number, PageQuery(limit=COMMENTS))
    texts = Texts(place)
    talk = Talk(subject, await texts.render(subject.body), [], page.next_cursor is not None)
    for entry in page.items:
        if texts.full:
            talk.more = True
            break
        talk.comments.append((entry, await texts.render(entry.body)))
    if isinstance(subject, Proposal):
        given = await review.page(place.view, number, PageQuery(limit=REVIEWS))
        for written in given.items:
            rendered = Text(written.body, None) if texts.full else await texts.render(written.body)
            talk.reviews.append((written, rendered))
        if subject.threads.open:
            query = ThreadQuery(limit=THREADS, state="open")
            talk.threads = list((await line_threads.page(place.view, number, query)).items)
        talk.checks = await check.of_seal(place.view, subject.head_seal)
    return talk


async def find_subject(place: ShownRepository, number: str) -> Issue | Proposal:
    """The issue or proposal with this number. Raises NotFound."""
    if whole_number(number, 9) is None:
        raise NotFound
    try:
        return await issue.get(place.view, number)
    except NotFound:
        return await proposal.get(place.view, number)


async def find_comment(place: ShownRepository, number: str, comment_id: str) -> Comment:
    """One comment on the issue or proposal. Raises NotFound."""
    async with place.view.read() as tx:
        return await comment.one_to_wire(tx, place.view, int(number), comment_id)


class Texts:
    """Renders the texts of one page, in the order in which it shows them."""

    def __init__(self, place: ShownRepository) -> None:
        self._renderer = place.view.node.renderer
        self._links = place.links(place.repo.default_branch, "")  # relative links lead there
        self._room = CHARS
        self._until = time.monotonic() + SECONDS

    @property
    def full(self) -> bool:
        """Whether the texts so far are as long as one page allows."""
        return self._room <= 0

    async def render(self, raw: str) -> Text:
        """Render a text of an issue, comment, review or release. If it cannot be rendered, or the texts
        before it took too long, the result has only the text itself."""
        if not raw.strip():
            return Text(raw, "")
        html = await self._renderer.markdown(raw, self._links) if time.monotonic() < self._until else None
        self._room -= len(raw if html is None else html)
        return Text(raw, html)
