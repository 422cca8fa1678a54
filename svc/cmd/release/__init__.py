"""Commands on releases."""

from svc.cmd.frame.registration import Registration

GROUPS = {"repo release": "Releases: versions of exact seals, with notes and files to download"}

COMMANDS: dict[str, Registration] = {
    "repo release list": Registration("release.release:list_releases", "List releases"),
    "repo release create": Registration("release.release:create", "Create a release of an exact seal"),
    "repo release view": Registration("release.release:view", "Show a release"),
    "repo release edit": Registration("release.release:edit", "Rewrite the notes of a release"),
    "repo release sign": Registration("release.sign:sign", "Sign a release with the files that it has"),
    "repo release delete": Registration("release.release:delete", "Delete a release and its assets"),
    "repo release upload": Registration("release.asset:upload", "Upload files to a release"),
    "repo release download": Registration("release.asset:download", "Download assets into a folder"),
    "repo release delete-asset": Registration("release.asset:delete_asset", "Remove an asset of a release"),
}
