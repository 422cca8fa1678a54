"""Backups of a node, for every database and object store: made while relays run, restored into an empty data
folder, database and bucket, which may be of another kind.

    DIR/manifest.json         what belongs to the backup, with sizes and BLAKE3
    DIR/<id>/database         every row, as of one moment (`tables`)
    DIR/<id>/private/…        the signer's key and the secrets of `--dev`
    DIR/objects/NAME-SIZE.pack
"""
