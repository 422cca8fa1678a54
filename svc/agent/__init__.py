"""The agent: a process that keeps watched folders and their branches in sync. Each SVC_HOME has its own.

process  starts and ends the agent: its lock, its socket for clients
folder   one watched folder: a thread that locks it for short rounds of work
editing  texts of a folder that are open in the app or an editor
rounds   the steps of a round, and what it reports
saves    detects saves with inotify, or else with watchfiles
line     the connection to one server by socket or polls, and its light (live, polling, offline)
look     follows a branch for a client that has no folder of it
sender   sends the outbox
start    connects a client to the agent, and starts the agent if needed
"""
