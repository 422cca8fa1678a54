"""Live editing of branches. Each branch has a frontier (its files now, with unsealed edits), each text a lane
(its merged edits), and each lane has epochs (a new one begins after a seal). Landing makes a seal from
elsewhere the head of a live branch.
"""
