"""Routes of what people do together."""
