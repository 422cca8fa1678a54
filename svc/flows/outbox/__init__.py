"""The outbox: queued actions on servers, and sending them."""
