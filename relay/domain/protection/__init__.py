"""Protects branches by rules."""
