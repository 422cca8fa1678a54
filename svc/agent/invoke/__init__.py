"""Commands that the app, editors and scripts call on the agent's socket with `invoke`. The answer of each is
an ApiResponse.

    table     the commands, by category
    bus       runs one invocation: checks arguments, runs the command, wraps the result
    sync      sync_status, sync_queue, sync_pause
    hardware  system_info, cpu_info, memory_info, disk_info
    gallery   images of watched folders and repositories
    picture   decodes one image, in a separate process with limits
    programs  runs svc commands and picture, in separate processes

All other commands are commands of svc, which `svc.cmd.frame.invoked` runs in a separate process."""
