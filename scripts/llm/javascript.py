"""Runs the official JavaScript clients of Ollama and OpenAI against the local LLM server.

    python -m scripts.llm.javascript [FOLDER]

npm installs the clients that package.json pins into FOLDER, by default a temporary folder. The server is
started with tiny models, and ends with the script. The exit code is 1 if a call returns something unexpected.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.llm.conftest import Kept, add, add_kinds

HERE = Path(__file__).parent


def main() -> int:
    with contextlib.ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="llm-clients-")))
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else work / "packages"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_bytes((HERE / "package.json").read_bytes())
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
        add(work / "llm", "tiny", "say")
        add(work / "llm", "loop", "loop", context=4096)
        add(work / "llm", "tool", "tool", context=2048)
        add_kinds(work / "llm")
        server = Kept(work / "llm")
        stack.callback(server.close)
        words = ["node", str(HERE / "clients.mjs"), server.url, str(folder)]
        return subprocess.run(words).returncode


if __name__ == "__main__":
    sys.exit(main())
