"""Live editing of branches. Each branch has a frontier: its files now, with unsealed edits. Each text has a
lane: its merged edits. Each lane has epochs; a seal begins a new one. A landing makes a seal that was made
elsewhere, such as a merge, the head of a live branch."""
