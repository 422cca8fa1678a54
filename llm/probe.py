"""The command `python -m llm.probe`: loads the engine and prints the devices that it can use, or ends with an
error.

It is a separate process, because a signal ends a process that loads an engine built for another processor.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import msgspec


def main() -> int:
    try:
        import xllamacpp as engine
    except ImportError as error:
        print(error, file=sys.stderr)
        return 1
    devices = [
        {
            str(name): value if isinstance(value, (str, int, float)) else str(value)
            for name, value in device.items()
        }
        for device in engine.get_device_info()
        if isinstance(device, dict)
    ]
    report = {"version": version("xllamacpp"), "system": str(engine.get_system_info()), "devices": devices}
    sys.stdout.buffer.write(msgspec.json.encode(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
