"""Live editing. It has the frontier of a branch (its files now, with unsealed edits), lanes (the merged edits
of one text), epochs (new beginnings of a lane after a seal), and the landing of seals on a live branch.
"""
