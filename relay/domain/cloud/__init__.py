"""Machines at compute providers. No provider is built in: every launch is refused with a message that says
what is missing.
"""
