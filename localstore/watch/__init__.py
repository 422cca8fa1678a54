"""The watcher: a process beside a working copy that records which of its folders changed and when (Linux).

inotify   the kernel's events tree      which folders are watched, and when each changed last mounts    where
events are not reliable protocol  questions and answers, and how a command asks server    the process: its
lock, socket and end
"""
