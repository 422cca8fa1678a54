"""API keys of an account. The account makes, lists, rotates and revokes them here. A program that receives an
API key sends it here to check whether it is valid.
"""
