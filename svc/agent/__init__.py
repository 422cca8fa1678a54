"""The agent: one process for each SVC_HOME that keeps watched folders and their branches together.

process  its life: the lock, the socket, the end when idle
folder   one watched folder: a thread that owns it round after round
steps    what is done in a round, and what is said of it
saves    where saves are heard of: inotify, else watchfiles
line     one server: its socket, or polls, and the light
start    a client's way to it, starting it on demand
"""
