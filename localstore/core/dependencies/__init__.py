"""What a repository depends on, read from the manifests of its languages, and which advisories are about it.

    read("web/package.json", data)   # [Declared(ecosystem="npm", name="react", …), …]

Manifests are hostile input: every parser is bounded by `MANIFEST_FILE`, and what it cannot read is Invalid.
"""

from localstore.core.dependencies.manifests import Declared, is_manifest, key, read

__all__ = ["Declared", "is_manifest", "key", "read"]
