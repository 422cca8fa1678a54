"""The objects of repositories by digest, one by one, in packs and in chunks. Also has the collector, which
deletes objects that nothing refers to.
"""
