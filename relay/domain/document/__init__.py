"""Documents of an account: they are created, read, edited by several devices at once, archived and
deleted.
"""
