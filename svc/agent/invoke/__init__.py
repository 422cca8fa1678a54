"""Commands that the app, editors and scripts call on the agent's socket by `invoke`. Each is answered by an
ApiResponse.

    table     the commands, by category
    bus       one invocation: arguments checked, command run, result wrapped
    sync      sync_status, sync_queue, sync_pause
    hardware  system_info, cpu_info, memory_info, disk_info
    gallery   images of watched folders and repositories
    picture   decodes one image, in a separate process with limits
    programs  runs svc commands and picture, in separate processes

All other commands are commands of svc, which `svc.cmd.frame.invoked` runs in a separate process.
"""
