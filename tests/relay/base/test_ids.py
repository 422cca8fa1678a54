from __future__ import annotations

import re

from relay.base.ids import new_branch_id, new_id, new_repo_id


def test_ids_are_hex_of_their_lengths_and_each_is_new() -> None:
    for make, digits in ((new_id, 32), (new_repo_id, 20), (new_branch_id, 16)):
        made = [make() for _ in range(1000)]
        assert len(set(made)) == 1000
        assert all(re.fullmatch(rf"[0-9a-f]{{{digits}}}", one) for one in made)


def test_ids_of_repositories_are_ordered_by_time_beside_longer_ones() -> None:
    assert new_id()[:12] <= new_repo_id()[:12] <= new_id()[:12] <= new_repo_id()[:12]
