"""The process between a replay and the server that it launched: it ends the server when the replay ends, in any way.

It is run as a program of its own, with the standard library alone: `launch_guard.py JSON`, where JSON is `argv`, `cwd`,
`grace` and `stop`; the server's environment is its own, the server's log its stdout. Its standard input is a pipe from
the replay, to which nothing is written: when that closes (the replay has stopped the server, or was killed) the
server gets SIGTERM, and half of `grace` seconds to end its own processes, then its whole process group, and when the
other half is over SIGKILL. It exits with the server's code, when the server ends by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

LOOK = 0.1  # s between looks at the server
LAST = 10.0  # s that killed processes may take to be gone, and the stop command to run
NOT_STARTED = 127
PR_SET_PDEATHSIG = 1  # Linux: the signal that a process gets when its parent ends; here the guard itself
PR_SET_CHILD_SUBREAPER = 36  # Linux: processes that lose their parent become this one's, so none escapes


def main() -> int:
    """Start the server, wait for its end or the replay's, and leave nothing behind. Returns the exit code."""
    order = json.loads(sys.argv[1])
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the pipe alone decides
        signal.signal(each, signal.SIG_IGN)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        server = subprocess.Popen(
            order["argv"], cwd=order["cwd"], stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_plain
        )
    except OSError as error:
        print(f"{order['argv'][0]}: {error.strerror}", flush=True)
        return NOT_STARTED
    while server.poll() is None:
        if select.select([0], [], [], LOOK)[0] and not os.read(0, 1):
            break
    _end(server, order["grace"])
    if order["stop"]:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(order["stop"], stdin=subprocess.DEVNULL, timeout=LAST, check=False)
    code = server.returncode or 0
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _plain() -> None:
    """The server begins with the signals of a fresh process, and is asked to end when the guard is killed."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_DFL)


def _end(server: subprocess.Popen[bytes], grace: float) -> None:
    """Ask the server to end, then its whole group, then kill whatever is left of it and of what it left behind."""
    if server.poll() is None:
        server.terminate()  # a server that ends its own workers takes a signal to these for a crash
    stop = time.monotonic() + grace / 2
    while server.poll() is None and time.monotonic() < stop:
        time.sleep(LOOK)
    _signal(server.pid, signal.SIGTERM)
    stop = time.monotonic() + grace / 2
    while _alive(server) and time.monotonic() < stop:
        time.sleep(LOOK)
    stop = time.monotonic() + LAST
    while _alive(server) and time.monotonic() < stop:
        _signal(server.pid, signal.SIGKILL)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK)


def _signal(group: int, which: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, which)


def _alive(server: subprocess.Popen[bytes]) -> bool:
    """Whether anything is left. What has ended is reaped, whosever child it was."""
    server.poll()
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if pid == server.pid:
            server.returncode = os.waitstatus_to_exitcode(status)
        if pid == 0:
            return True
    try:
        os.killpg(server.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return sys.platform != "linux"  # on Linux what is left would be a child: it is another's zombie


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as stream:
            return [int(pid) for pid in stream.read().split()]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
