"""`python -m svc.agent SVC_HOME`: the agent's process."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

if __name__ == "__main__":
    from localstore.home import Home
    from svc.agent.process import serve
    from svc.flows.place import in_use

    home = Home(Path(sys.argv[1]))
    in_use.hold(home.root)
    gc.freeze()
    sys.setswitchinterval(0.0005)  # so that a woken thread starts at once
    sys.exit(serve(home))
