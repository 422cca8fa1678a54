"""The watcher: a background process for a working copy that records which of its folders changed and when
(Linux only).

    inotify   the kernel's events
    tree      the watched folders, and the time of each one's last change
    mounts    file systems on which events are not reliable
    protocol  questions and answers, and how a command asks
    server    the process: its lock, its socket, and when it ends"""
