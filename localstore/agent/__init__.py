"""The socket of the agent, the background process that keeps watched folders in sync. Here are its messages,
access checks, and the lock that allows one agent for each SVC_HOME.

    place   lock and socket in SVC_HOME
    talk    requests, answers and events, as JSON lines
    server  the listening side: limited in time and size

The agent itself is in `svc.agent`, because it needs the client of the relay."""
