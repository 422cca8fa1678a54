"""Webhooks: addresses that receive messages about events. Has the webhooks, the messages, and their
delivery.
"""
