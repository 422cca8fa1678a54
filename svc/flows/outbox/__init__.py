"""The outbox: queued actions for servers, and sending them."""
