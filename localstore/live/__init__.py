"""Live sync of one working copy. It touches only the paths of a save, or of a frame (a message about changes
on the live branch).

    saves   which paths were saved, and when each save counts
    single  a scan of single files
    stale   saves of old buffers: which lines they would delete
    frames  live frames of the relay: verified, stored, written
    rounds  the steps of one round: from a save to its update, from a frame to its files
    sheets  texts that are open in the app: typed changes become edits of their lanes
    reads   which written files a program has read since

The process that runs this is `svc.agent`."""
