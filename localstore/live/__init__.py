"""Live sync of one working copy: work on the paths that a save or a frame names, on nothing else.

saves   which paths were saved, and when each save counts
single  a scan of single files
stale   saves of an old buffer: whose lines they would take away
frames  what the relay tells: verified, stored, written
rounds  the steps of one round: a save to its update, a frame to its files

The process that runs this is `svc.agent`.
"""
