"""In which order pytest-xdist's processes take the tests: the longest first, so that none is left at the end.

A file goes to one process, because its tests share a relay; the tests of `APART` share only what the whole
process has, and each goes wherever there is room.
"""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

APART = {"tests/svc/test_transcripts.py", "tests/campaign/test_ways_out.py"}
# About how many seconds the longest files take (`--durations=0`); the order of the others matters little.
SECONDS = {
    "tests/relay/domain/git/test_building.py": 60,
    "tests/campaign/test_ways_out.py": 160,
    "tests/campaign/test_hostile_relay.py": 76,
    "tests/relay/http/test_openapi_fuzz.py": 15,
    "tests/svc/test_transcripts.py": 75,
    "tests/relay/domain/repository/test_pages_in_browser.py": 55,
    "tests/relay/run/test_documents_killed.py": 10,
    "tests/svc/flows/test_documents_offline.py": 60,
    "tests/svc/agent/test_asked_for.py": 16,
    "tests/svc/cmd/auth/test_pairing.py": 14,
    "tests/svc/cmd/test_llm_pull.py": 12,
    "tests/tui/test_team_day.py": 60,
    "tests/campaign/watching/test_watching.py": 53,
    "tests/campaign/test_nonsense.py": 38,
    "tests/test_guide_runs.py": 30,
    "tests/campaign/failures/test_app_kills.py": 200,
    "tests/campaign/failures/test_without_network.py": 60,
    "tests/tui/settings/test_settings.py": 85,
    "tests/tui/test_layer.py": 30,
    "tests/tui/test_images.py": 20,
    "tests/campaign/failures/test_kills.py": 32,
    "tests/campaign/watching/test_watching_relays.py": 45,
    "tests/campaign/together/test_team_day.py": 30,
    "tests/relay/run/test_start.py": 30,
    "tests/svc/cmd/test_llm.py": 35,
    "tests/llm/test_faults.py": 20,
    "tests/relay/rights/test_paths.py": 30,
    "tests/localstore/core/test_merge_work.py": 30,
    "tests/campaign/failures/test_bad_machine.py": 30,
    "tests/localstore/test_histories.py": 16,
    "tests/tui/test_commands.py": 30,
    "tests/tui/code/test_live.py": 30,
    "tests/tui/lists/test_filters.py": 15,
    "tests/tui/lists/test_moving.py": 15,
    "tests/tui/proposal/test_review.py": 30,
    "tests/tui/proposal/test_proposals.py": 27,
    "tests/relay/rights/test_matrix.py": 26,
    "tests/scripts/test_stamp.py": 23,
    "tests/relay/domain/history/test_blame.py": 15,
    "tests/localstore/core/lane/test_load_cost.py": 23,
    "tests/svc/agent/test_watch.py": 22,
    "tests/campaign/test_history.py": 12,
    "tests/relay/test_idempotency.py": 20,
    "tests/campaign/test_executable.py": 20,
    "tests/relay/auth/test_browser.py": 19,
    "tests/relay/run/test_backup.py": 18,
    "tests/relay/domain/live/test_branch_base.py": 10,
    "tests/relay/events/test_followers.py": 8,
    "tests/relay/run/test_maintenance.py": 17,
    "tests/localstore/core/diff/test_git_alignment.py": 16,
    "tests/tui/test_app.py": 28,
    "tests/svc/flows/test_partial_downloads.py": 15,
    "tests/relay/run/test_migrations_postgres.py": 15,
    "tests/tui/test_issues.py": 14,
    "tests/svc/cmd/test_resolve.py": 14,
    "tests/relay/domain/history/test_following.py": 8,
    "tests/test_pages_run.py": 13,
    "tests/svc/cmd/test_pr_merge.py": 13,
    "tests/campaign/test_hostile_client.py": 13,
    "tests/relay/live/test_channels.py": 12,
    "tests/relay/domain/test_costs.py": 11,
    "tests/relay/domain/proposal/test_proposal.py": 11,
    "tests/relay/domain/test_switched_off.py": 10,
    "tests/relay/rights/test_partial_fork.py": 15,
    "tests/svc/cmd/test_refused_first.py": 30,
    "tests/svc/flows/test_large_files.py": 20,
    "tests/relay/domain/release/test_release.py": 20,
    "tests/tui/test_large.py": 20,
    "tests/relay/db/engine/test_postgres.py": 20,
    "tests/relay/domain/history/test_compare.py": 18,
    "tests/relay/base/test_environment.py": 15,
    "tests/relay/rights/test_waiting.py": 15,
}
FEW = 5


def seconds(nodeid: str) -> int:
    return SECONDS.get(nodeid.partition("::")[0], FEW)


class Scheduling(LoadScopeScheduling):
    """Hands out files, in the order in which they were collected."""

    def __init__(self, config, log) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file in APART else file
