"""The resources of the API as frozen msgspec Structs. The same struct is used for the body of a request or
answer, for the row that the client stores, and for the output of `--json`.

Members are snake_case. Times are RFC 3339 UTC strings, and their names end in `_at`. Sizes are bytes, digests
are lowercase hex BLAKE3-256, binary data is base64url without padding, ids are opaque. Readers ignore unknown
members, except in signed data (`seal`, `update`). Each resource has one module, with the same name as in
every other layer. The modules `rights` and `limits` contain tables for all resources."""
