"""Computes the cost of loading a lane before the CRDT library sees its bytes.

A crafted state of a few kilobytes can keep the library busy for minutes. An item is a run of text that one
client inserted. Four operations take more than linear time: walking over items at the same place
(`_conflicts`), splitting items (`_cut`), postponing items that need an item of another replica (`_next`), and
joining neighbours of one writer (`_join`). This module arranges the items as the library does, without their
text, and counts these operations. For honest replicas the count is near zero.

A step is about 0.1 µs of the library."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from localstore.core.lane.update_format import Point, Struct, Update
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid

NOWHERE = -1
READ, WOVEN = 64, 4  # steps to read and weave an item; to weave what the library does in a step
SHIFTED_PER_STEP = 256  # entries of a list that move up in the time of a step
UNITS_PER_STEP = 128  # of a text that is measured to be cut: the worst, characters of three bytes
JOINED_PER_STEP = 64  # units of a text that is copied to be joined
CLIENTS_PER_STEP = 64  # that are looked through when an item waits
CLEARED_PER_STEP = 1024  # entries of a table that is emptied
PARTS = 3  # items that one item can become when others lean on its middle, at the average


class Load(msgspec.Struct, frozen=True):
    """Upper bounds for a lane. `steps`: the work to load it; `longest`: the length of its longest item
    (inserted run) in UTF-16 units."""

    steps: int = 0
    longest: int = 0

    def after(self, updates: Sequence[Update], items: int) -> Load:
        """The bounds for the lane after these updates. `items`: how many items (inserted runs) the lane has
        before. Assumes the worst case: each new or split item is compared with all others, and all new text
        is joined to the longest item."""
        structs, changes, longest = 0, 0, self.longest
        for update in updates:
            structs += len(update.structs)
            changes += len(update.structs) + len(update.deletions)
            for struct in update.structs:
                longest += struct.length
        each = PARTS * (items + PARTS * structs) + 2 * longest // UNITS_PER_STEP
        return Load(self.steps + changes * each, longest)


def load_of(first: Update, *more: Update) -> Load:
    """An upper bound of the cost of loading these updates into an empty lane, in order. Items (inserted runs)
    that are already known are skipped.

    The updates must have passed `update_format.validate_state` or `check`. Raises UpdateInvalid if the cost
    is above LANE_WORK, or if two items must each come after the other one."""
    bound = _bound((first, *more))
    return bound if bound.steps <= limits.LANE_WORK else woven(first, *more)


def woven(*updates: Update) -> Load:
    """The exact cost of loading these updates into an empty lane, one after the other. `load_of` is faster,
    but returns only an upper bound."""
    weave = Weave()
    for update in updates:
        weave.load(update)
    return Load(weave.spent, weave.longest)


def exact_cost(items: int, steps: int) -> int:
    """How many steps it takes to compute the exact cost of loading a lane. `items`: how many items (inserted
    runs) the lane has; `steps`: an upper bound of that cost."""
    return READ * items + WOVEN * steps


def _bound(updates: Sequence[Update]) -> Load:
    """An upper bound of the cost of loading these updates. It is computed without putting their items
    (inserted runs) in order, and is close enough for most lanes."""
    structs = [struct for update in updates for struct in update.structs]
    count, deletions = len(structs), sum(len(update.deletions) for update in updates)
    units = sum(struct.length for struct in structs)
    clients = len({struct.client for struct in structs})
    parts = PARTS * (count + deletions)
    steps = (
        parts * count
        + 2 * (count + deletions) * (1 + parts // SHIFTED_PER_STEP + units // UNITS_PER_STEP)
        + count * clients // CLIENTS_PER_STEP
        + count * units // JOINED_PER_STEP
    )
    return Load(steps, units)


class Weave:
    """The items (inserted runs) of a lane, arranged in the order of the CRDT library. Each item has a number,
    which is its index in the lists of properties. `spent`: how many steps it took to arrange them."""

    def __init__(self) -> None:
        self.spent = self.longest = 0
        self._known_ends: dict[int, int] = {}
        self._client: list[int] = []
        self._clock: list[int] = []
        self._end: list[int] = []
        self._origin: list[Point | None] = []
        self._right_origin: list[Point | None] = []
        self._is_text: list[bool] = []  # whether it is text
        self._before: list[int] = []
        self._after: list[int] = []
        self._first = NOWHERE
        self._starts: dict[int, list[int]] = {}  # of each client's items, ascending
        self._items: dict[int, list[int]] = {}  # the items themselves, beside their starts

    def load(self, update: Update) -> None:
        """Arrange the new items (inserted runs) of the update in the order of the CRDT library."""
        queues: dict[int, list[Struct]] = {}
        for struct in update.structs:
            queues.setdefault(struct.client, []).append(struct)
        for client, queue in queues.items():
            queue.reverse()
            self._pass_over(client, queue)
        for client in sorted(queues, reverse=True):
            waiting: list[Struct] = []
            while waiting or queues[client]:
                struct = waiting.pop() if waiting else queues[client].pop()
                needed = _missing(struct, self._known_ends)
                if needed is not None:
                    waiting += (struct, self._next(queues, needed))
                    continue
                self._place(struct)
                self._known_ends[struct.client] = struct.clock + struct.length
        for client, clock, length in update.deletions:
            self._from((client, clock))
            self._until((client, clock + length - 1))
        for client in queues:
            self._join(client)

    def _pass_over(self, client: int, queue: list[Struct]) -> None:
        """Drop those items of `client` from its queue that are already placed. `queue`: its items (inserted
        runs), the next one at the end. If only the first part of the next item is placed, its other part
        stays in the queue."""
        known_end = self._known_ends.get(client, 0)
        while queue and queue[-1].clock + queue[-1].length <= known_end:
            queue.pop()
        if queue and queue[-1].clock < known_end:
            half = queue[-1]
            queue[-1] = half._replace(
                clock=known_end, length=half.clock + half.length - known_end, origin=(client, known_end - 1)
            )

    def _spend(self, steps: int) -> None:
        self.spent += steps
        if self.spent > limits.LANE_WORK:
            raise UpdateInvalid(
                "the edits of the lane lie across each other so that loading it takes too long"
            )

    def _next(self, queues: dict[int, list[Struct]], client: int) -> Struct:
        """Take the next item (inserted run) of `client` from its queue, because another item can only be
        placed after it. Raises UpdateInvalid if the queue is empty."""
        self._spend(1 + len(queues) // CLIENTS_PER_STEP)
        queue = queues.get(client)
        if not queue:
            raise UpdateInvalid("parts of the lane are waiting for each other")
        return queue.pop()

    def _place(self, struct: Struct) -> None:
        left = NOWHERE if struct.origin is None else self._until(struct.origin)
        right = NOWHERE if struct.right_origin is None else self._from(struct.right_origin)
        if left == NOWHERE:
            crowded = right == NOWHERE or self._before[right] != NOWHERE
        else:
            crowded = self._after[left] != right
        if crowded:
            left = self._conflicts(struct, left, right)
        self._insert(struct, left, len(self._starts.get(struct.client, ())))

    def _conflicts(self, struct: Struct, left: int, right: int) -> int:
        """Decides where to place the item (inserted run) `struct` between the items `left` and `right`, if
        other writers have placed items there too. Returns the item after which it is placed."""
        client, origin, right_origin = struct.client, struct.origin, struct.right_origin
        clients, origins, after = self._client, self._origin, self._after  # looked up once: this is the loop
        passed: dict[int, int] = {}  # the items, each with how often a closer one had been found before
        closer = most = 0
        room = limits.LANE_WORK - self.spent
        other = self._first if left == NOWHERE else after[left]
        while other not in (NOWHERE, right) and len(passed) <= room:
            passed[other] = closer
            its = origins[other]
            if its == origin:
                is_closer = clients[other] < client
                if not is_closer and self._right_origin[other] == right_origin:
                    break
            else:
                before = passed.get(NOWHERE if its is None else self._at(its))
                if before is None:
                    break
                is_closer = before != closer
            if is_closer:
                left, most, closer = other, max(most, len(passed)), closer + 1
                room -= most // CLEARED_PER_STEP
            other = after[other]
        self._spend(limits.LANE_WORK - self.spent - room + len(passed))
        return left

    def _insert(self, struct: Struct, previous: int, place: int) -> None:
        """Place the item (inserted run) `struct` directly after the item with the number `previous`, or at
        the start of the text if that is NOWHERE. `place`: the index of the new item among the items of its
        client."""
        item = len(self._client)
        after = self._first if previous == NOWHERE else self._after[previous]
        self._client.append(struct.client)
        self._clock.append(struct.clock)
        self._end.append(struct.clock + struct.length)
        self._origin.append(struct.origin)
        self._right_origin.append(struct.right_origin)
        self._is_text.append(struct.text is not None)
        self._before.append(previous)
        self._after.append(after)
        if previous == NOWHERE:
            self._first = item
        else:
            self._after[previous] = item
        if after != NOWHERE:
            self._before[after] = item
        self._starts.setdefault(struct.client, []).insert(place, struct.clock)
        self._items.setdefault(struct.client, []).insert(place, item)

    def _at(self, point: Point) -> int:
        """The number of the item (inserted run) that contains a UTF-16 unit. `point`: the unit as (client,
        clock), where the clock counts the units of the client from 0."""
        client, clock = point
        return self._items[client][bisect_right(self._starts[client], clock) - 1]

    def _until(self, point: Point) -> int:
        """The number of the item (inserted run) that ends with a UTF-16 unit. A longer item is split after
        the unit. `point`: the unit as (client, clock), where the clock counts the units of the client from
        0."""
        item = self._at(point)
        self._cut(item, point[1] + 1)
        return item

    def _from(self, point: Point) -> int:
        """The number of the item (inserted run) that begins with a UTF-16 unit. An item that begins earlier
        is split before the unit. `point`: the unit as (client, clock), where the clock counts the units of
        the client from 0."""
        item = self._at(point)
        return self._cut(item, point[1])

    def _cut(self, item: int, clock: int) -> int:
        """Split the item (inserted run) with the number `item` before one of its UTF-16 units. Returns the
        number of the second part. `clock`: the number of the unit among all units of its client. At the start
        or end of the item nothing is split, and `item` is returned."""
        start, end, client = self._clock[item], self._end[item], self._client[item]
        if clock in (start, end):
            return item
        place = bisect_right(self._starts[client], start)
        moved = len(self._starts[client]) - place
        self._spend(1 + moved // SHIFTED_PER_STEP + (end - start) // UNITS_PER_STEP)
        self._end[item] = clock
        rest = Struct(
            client,
            clock,
            end - clock,
            (client, clock - 1),
            self._right_origin[item],
            b"" if self._is_text[item] else None,
        )
        self._insert(rest, item, place)
        return len(self._client) - 1

    def _join(self, client: int) -> None:
        """Count the steps that the CRDT library needs to join each item (inserted run) of a client with the
        next one, if that continues it. The last items are joined first."""
        items = self._items.get(client, [])
        joined_units = 0  # units of the items that are joined to `right`, itself included
        for place in range(len(items) - 1, -1, -1):
            right = items[place]
            joined_units += self._end[right] - self._clock[right]
            self.longest = max(self.longest, joined_units)
            left = items[place - 1] if place else NOWHERE
            if left != NOWHERE and self._after[left] == right and self._continues(left, right):
                self._spend(1 + joined_units // JOINED_PER_STEP)
            else:
                joined_units = 0

    def _continues(self, left: int, right: int) -> bool:
        """Whether the item (inserted run) `right` continues the item `left`, so that both can be joined into
        one."""
        return (
            self._is_text[left]
            and self._is_text[right]
            and self._origin[right] == (self._client[left], self._end[left] - 1)
            and self._right_origin[left] == self._right_origin[right]
        )


def _missing(struct: Struct, ends: dict[int, int]) -> int | None:
    """The client whose next item (inserted run) has to be placed before the item `struct`, because `struct`
    refers to it. None if `struct` can be placed now. `ends`: how many units of each client are placed."""
    for point in (struct.origin, struct.right_origin):
        if point is None:
            continue
        if point[0] == struct.client:
            if point[1] >= struct.clock:
                raise UpdateInvalid("parts of the lane are waiting for each other")
        elif point[1] >= ends.get(point[0], 0):
            return point[0]
    return None
