"""Queues actions for servers in the outbox, and sends them later."""
