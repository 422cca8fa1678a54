"""Forbids system calls that a confined process does not need, with seccomp. Works on Linux on x86-64 and
ARM64.

Sockets are forbidden, because connections come over the link to the relay. Also forbidden is everything about
other processes, and parts of the Linux kernel that the app does not need. A forbidden call fails with
EPERM."""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import NamedTuple

from svc.remote.system import libc

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _MACHINE = 0, 4  # offsets in what a filter sees
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NO_NEW_PRIVS, _SECCOMP, _FILTER = 38, 22, 2
_NAMESPACES = 0x7E020080  # flags of clone
_DATAGRAM, _KIND = 2, 0xF  # of socketpair; sent datagrams may name another receiver

_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "pidfd_send_signal": 424,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "mount_setattr": 442,
}
_X86_64 = {
    "socket": 41,
    "connect": 42,
    "accept": 43,
    "bind": 49,
    "listen": 50,
    "accept4": 288,
    "ptrace": 101,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "migrate_pages": 256,
    "move_pages": 279,
    "setpriority": 141,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "sched_setaffinity": 203,
    "sched_setattr": 314,
    "ioprio_set": 251,
    "bpf": 321,
    "perf_event_open": 298,
    "userfaultfd": 323,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "mount": 165,
    "umount2": 166,
    "pivot_root": 155,
    "chroot": 161,
    "unshare": 272,
    "setns": 308,
    "name_to_handle_at": 303,
    "open_by_handle_at": 304,
    "shmget": 29,
    "semget": 64,
    "msgget": 68,
    "mq_open": 240,
    "init_module": 175,
    "finit_module": 313,
    "kexec_load": 246,
    "reboot": 169,
}
_ARM64 = {
    "socket": 198,
    "bind": 200,
    "listen": 201,
    "accept": 202,
    "connect": 203,
    "accept4": 242,
    "ptrace": 117,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "migrate_pages": 238,
    "move_pages": 239,
    "setpriority": 140,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "sched_setattr": 274,
    "ioprio_set": 30,
    "bpf": 280,
    "perf_event_open": 241,
    "userfaultfd": 282,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "mount": 40,
    "umount2": 39,
    "pivot_root": 41,
    "chroot": 51,
    "unshare": 97,
    "setns": 268,
    "name_to_handle_at": 264,
    "open_by_handle_at": 265,
    "shmget": 194,
    "semget": 190,
    "msgget": 186,
    "mq_open": 180,
    "init_module": 105,
    "finit_module": 273,
    "kexec_load": 104,
    "reboot": 142,
}


class _Machine(NamedTuple):
    """The numbers of system calls on one kind of processor. `code` is the processor's number in seccomp
    filters. `refused` maps the names of forbidden system calls to their numbers. `bounded` says whether
    numbers from 0x40000000 on belong to a second numbering (x32), and must be forbidden."""

    code: int
    refused: dict[str, int]
    socketpair: int
    clone: int
    prlimit: int
    bounded: bool


_CLONE3 = 435  # its flags are in memory, which a filter does not see; the C library then takes clone
_MACHINES = {
    "x86_64": _Machine(0xC000003E, _X86_64, 53, 56, 302, True),
    "aarch64": _Machine(0xC00000B7, _ARM64, 199, 220, 261, False),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def refuse() -> None:
    """Forbid, for this process and its children, the system calls that they do not need. This cannot be
    undone. Raises OSError if the kind of processor is unknown or Linux has no seccomp."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {platform.machine()}")
    code = b"".join(_program(machine))
    program = _Program(len(code) // 8, code)
    if libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc().prctl(
        _SECCOMP, _FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


def _program(machine: _Machine) -> list[bytes]:
    refusal = _step(_RETURN, _ERROR | errno.EPERM)
    steps = [
        _step(_LOAD, _MACHINE),
        _step(_EQUAL, machine.code, 1, 0),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
    ]
    if machine.bounded:
        steps += [_step(_AT_LEAST, 0x40000000, 0, 1), refusal]
    for number in (*machine.refused.values(), *_EVERYWHERE.values()):
        steps += [_step(_EQUAL, number, 0, 1), refusal]
    steps += [_step(_EQUAL, _CLONE3, 0, 1), _step(_RETURN, _ERROR | errno.ENOSYS)]
    steps += [  # each looks at an argument and leaves the number behind
        _step(_EQUAL, machine.clone, 0, 4),
        _step(_LOAD, _argument(0)),
        _step(_ANY_BIT, _NAMESPACES, 0, 1),
        refusal,
        _step(_LOAD, _NUMBER),
        _step(_EQUAL, machine.prlimit, 0, 4),
        _step(_LOAD, _argument(0)),
        _step(_EQUAL, 0, 1, 0),
        refusal,
        _step(_LOAD, _NUMBER),
        _step(_EQUAL, machine.socketpair, 0, 4),
        _step(_LOAD, _argument(1)),
        _step(_AND, _KIND),
        _step(_EQUAL, _DATAGRAM, 0, 1),
        refusal,
    ]
    return [*steps, _step(_RETURN, _ALLOW)]


def _argument(index: int) -> int:
    """Return the position of a system call's argument in the data that a seccomp filter sees. `index` is the
    number of the argument. The position is the byte offset of the argument's lower 32 bits."""
    return 16 + 8 * index


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
