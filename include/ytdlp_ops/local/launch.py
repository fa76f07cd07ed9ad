"""
Becomes another program that ends with the one that started it.

    python -I -S launch.py PARENT_PID SIGNAL [--as-nobody] COMMAND…

Run by path, as a program of its own: `subprocess`'s `preexec_fn` would run Python between fork and exec, which is
unsafe beside threads. Standard library only, so that it costs a few milliseconds.

PostgreSQL refuses to run as root. For root, `--as-nobody` gives up the identity but keeps the one capability that
lets the new process reach its files below directories such as ``/root``: nobody's permissions have to change.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import struct
import sys

PR_SET_PDEATHSIG = 1
PR_SET_SECUREBITS = 28
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
SECBIT_NO_SETUID_FIXUP = 1 << 2
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent(parent: int, signal_number: int) -> None:
    """
    Have the kernel send this process a signal when its parent ends, also when that was killed.

    :raises SystemExit: if the parent has already ended.
    """
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the process that started this one has ended")


def become_nobody() -> None:
    """Take the identity of the user `nobody`; keep access to files where the kernel allows it."""
    nobody = pwd.getpwnam("nobody")
    keeps_access = sys.platform == "linux" and _keep_file_access()
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
    if keeps_access:
        _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0)


def _keep_file_access() -> bool:
    """Let CAP_DAC_OVERRIDE, and nothing else, outlive exec after the change of user: see capabilities(7)."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    sets = ctypes.create_string_buffer(24)
    _libc.capget(header, sets)
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("=6I", sets.raw)
    wanted = struct.pack("=6I", effective, permitted, 1 << CAP_DAC_OVERRIDE, effective_high, permitted_high, 0)
    stays = _libc.prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0
    return stays and bool(_libc.capset(header, wanted) == 0)


if __name__ == "__main__":
    parent_pid, signal_sent, *command = sys.argv[1:]
    if command[0] == "--as-nobody":
        command.pop(0)
        become_nobody()
    end_with_parent(int(parent_pid), int(signal_sent))  # last: a change of user would clear it
    os.execvp(command[0], command)  # noqa: S606 - the command is the supervisor's own
