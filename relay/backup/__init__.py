"""Makes and restores backups of a node, whatever its database and object store are.

A backup is made while relays run. It is restored into an empty data folder, an empty database and, if packs
are in a bucket, an empty bucket. These may be of another kind than those of the backed-up node.

    DIR/manifest.json         what belongs to the backup, with sizes and BLAKE3
    DIR/<id>/database         every row, as of one moment (`tables`)
    DIR/<id>/private/…        the signer's key and the secrets of `--dev`
    DIR/objects/NAME-SIZE.pack
"""
