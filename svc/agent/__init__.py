"""The agent: one process for each SVC_HOME that keeps watched folders and their branches in sync.

process  start, lock, socket for clients, end when idle
folder   one watched folder: a thread that locks it for short rounds of work
editing  texts of a folder that are open in the app
rounds   the steps of a round and its reports
saves    detects saves: inotify, else watchfiles
line     the connection to one server: socket or polls, and its light (live, polling, offline)
look     follows a branch for a client, without a folder
sender   sends the outbox
start    connects a client, starting the agent if needed
"""
