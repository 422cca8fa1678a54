"""Webhooks: addresses that receive messages about events, the messages, and their delivery."""
