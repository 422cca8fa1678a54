"""`invoke` on the agent's socket: commands for the app, editors and scripts, each answered by an ApiResponse.

table     which commands there are, by category, and which this version lacks
bus       one invocation: arguments checked, carried out, wrapped
sync      sync_status, sync_queue, sync_pause
hardware  system_info, cpu_info, memory_info, disk_info
gallery   images of watched folders and repositories
picture   decodes one image, in a bounded process of its own
programs  runs svc commands and picture, in processes of their own

All other commands are commands of svc, which `svc.cmd.frame.invoked` carries out in such a process.
"""
