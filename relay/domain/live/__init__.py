"""Live editing of branches. Each branch has a frontier: its files now, with unsealed edits. Each text has a
lane: its merged edits. Each lane has epochs, of which a seal begins a new one. Landing makes a seal from
elsewhere the head of a live branch."""
