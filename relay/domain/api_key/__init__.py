"""API keys of an account. The account makes, lists, rotates and revokes them here. Programs that accept the
keys have them checked here.
"""
