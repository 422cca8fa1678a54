"""The agent's socket: what is said on it, who may speak, and the lock that lets one agent live per SVC_HOME.

place   lock and socket in SVC_HOME
talk    requests, answers and events, as JSON lines
server  the listening side: one line after the other, bounded

What the agent does is in `svc.agent`, which needs the client of the relay.
"""
