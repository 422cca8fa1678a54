"""Routes of sealing: `prepare` computes the bytes to sign, `finalize` receives their signature."""

from __future__ import annotations

from localstore.core.model import seal
from localstore.core.model.limits import MIB
from relay.domain.sealing import seal as seals
from relay.domain.sealing import trees
from relay.http.routing import behind

serves_sealing = behind("TR_REPO_SEALING")

TREES_BODY = 16 * MIB

serves_sealing(seal.PREPARE, operation="seal.prepare", errors=(409, 413))(seals.prepare)
serves_sealing(seal.FINALIZE, operation="seal.finalize", errors=(409, 410))(seals.finalize)
serves_sealing(
    seal.PREPARE_SEALS,
    operation="seals.prepare",
    name="seal.prepare_seals",
    max_body=TREES_BODY,
    errors=(409, 413),
)(trees.prepare)
serves_sealing(
    seal.FINALIZE_SEALS,
    operation="seals.finalize",
    name="seal.finalize_seals",
    errors=(409, 410),
)(trees.finalize)
