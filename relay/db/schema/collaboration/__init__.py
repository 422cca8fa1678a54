"""Tables of what people do together."""
