"""Resources as frozen Structs: the same struct for the body on the wire, the local row and the fields of
`--json`.

snake_case members; times are RFC 3339 UTC strings ending in `_at`; sizes are bytes; digests are lowercase hex
BLAKE3-256; binary is base64url without padding; ids are opaque. Readers ignore unknown members, except in
signed data (`seal`, `update`). One module per noun, with the same name as in every other layer; `rights` and
`limits` are tables over all nouns.
"""
