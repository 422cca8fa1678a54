"""Routes of merges: of proposals, of a base into a proposal's branch, and of two refs."""

from __future__ import annotations

from localstore.core.model import merge, proposal
from localstore.core.model.limits import MIB
from relay.domain.merging import auto, prepare, trial
from relay.domain.merging import merge as finalize
from relay.http.routing import REPOSITORIES, behind

serves_sealing = behind("TR_REPO_SEALING")

# Reading a proposal tries its merge; proposals themselves know nothing of merges.
serves_sealing(proposal.GET, operation="proposal.get", name="proposal.get_proposal", flag=REPOSITORIES)(
    trial.get
)

serves_sealing(
    merge.PREPARE,
    operation="proposal.merge_prepare",
    name="merge.prepare_merge",
    errors=(409, 413),
)(prepare.merge)
serves_sealing(
    merge.FINALIZE,
    operation="proposal.merge_finalize",
    name="merge.finalize_merge",
    max_body=MIB,
    errors=(409, 410),
)(finalize.merge)
serves_sealing(
    merge.AUTO,
    operation="proposal.auto_merge",
    name="merge.enable_auto_merge",
    max_body=MIB,
    errors=(409, 410),
)(auto.enable)
serves_sealing(merge.AUTO_OFF, operation="proposal.auto_merge", name="merge.disable_auto_merge")(auto.disable)
serves_sealing(
    merge.UPDATE_PREPARE,
    operation="proposal.update_branch",
    name="merge.prepare_update",
    errors=(409, 413),
)(prepare.update)
serves_sealing(
    merge.UPDATE_FINALIZE,
    operation="proposal.update_branch",
    name="merge.finalize_update",
    errors=(409, 410),
)(finalize.update)
serves_sealing(
    merge.PREVIEW,
    operation="merge.preview",
    name="merge.preview",
    flag="TR_REPO_MERGE_ENABLED",
    errors=(409, 413),
)(prepare.preview)
serves_sealing(
    merge.MERGE, operation="merge.merge", name="merge.merge", flag="TR_REPO_MERGE_ENABLED", errors=(409, 410)
)(finalize.merge_guarded)
