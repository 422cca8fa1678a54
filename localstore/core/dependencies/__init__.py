"""The dependencies of a repository, read from the manifests of its languages, and the advisories that affect
them.

    read("web/package.json", data)   # [Declared(ecosystem="npm", name="react", …), …]

Manifests are hostile input: every parser is bounded by `MANIFEST_FILE`, and raises Invalid for unreadable
input.
"""

from localstore.core.dependencies.manifests import Declared, is_manifest, key, read

__all__ = ["Declared", "is_manifest", "key", "read"]
