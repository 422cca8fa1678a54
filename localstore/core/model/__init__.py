"""The resources of the API as frozen msgspec Structs. The same struct is the body of a request or answer, the
client's stored row, and the fields of `--json`.

Members are snake_case; times are RFC 3339 UTC strings ending in `_at`; sizes are bytes; digests are lowercase
hex BLAKE3-256; binary is base64url without padding; ids are opaque. Readers ignore unknown members, except in
signed data (`seal`, `update`). Each resource has one module, with the same name as in every other layer;
`rights` and `limits` are tables for all of them."""
