"""The guard leaves nothing of a server behind, whichever way the replay ends."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentx.replayer import launch_guard

STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session={apart})
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""


def guard(tmp_path: Path, code: str, *, grace: float = 0.3, stop: tuple[str, ...] = ()) -> subprocess.Popen:
    order = {"argv": [sys.executable, "-c", code], "cwd": str(tmp_path), "grace": grace, "stop": stop}
    with (tmp_path / "log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", launch_guard.__file__, json.dumps(order)], stdin=subprocess.PIPE, stdout=log
        )


def pids(tmp_path: Path) -> list[int]:
    for _ in range(400):
        if words := (tmp_path / "log").read_text().split():
            return [int(word) for word in words]
        time.sleep(0.05)
    raise AssertionError("the server never spoke")


def alive(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("apart", [False, True])  # a child in a session of its own is no part of the group
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_server_that_does_not_end_is_killed_with_its_children(tmp_path, apart):
    process = guard(tmp_path, STUBBORN.format(apart=apart))
    server, child = pids(tmp_path)
    assert alive(server)
    process.terminate()  # a signal to the guard itself does nothing
    process.stdin.close()
    assert process.wait(30) == 128 + 9
    assert not alive(server)
    assert not alive(child)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
def test_a_guard_that_is_killed_takes_the_server_with_it(tmp_path):
    process = guard(tmp_path, "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    (server,) = pids(tmp_path)
    process.kill()
    process.wait(30)
    for _ in range(200):
        if not alive(server):
            break
        time.sleep(0.05)
    assert not alive(server)


def test_the_servers_own_end_is_passed_on(tmp_path):
    process = guard(tmp_path, "import sys; print('no GPU'); sys.exit(3)")
    assert process.wait(30) == 3
    assert (tmp_path / "log").read_text() == "no GPU\n"


def test_a_server_that_ends_when_asked_does_so_with_its_code(tmp_path):
    code = "import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); print(os.getpid(), flush=True)\n"
    process = guard(tmp_path, code + "time.sleep(600)", grace=20, stop=("sh", "-c", "echo stopped"))
    pids(tmp_path)
    process.stdin.close()
    assert process.wait(30) == 0
    assert (tmp_path / "log").read_text().endswith("stopped\n")


def test_a_command_that_is_not_there(tmp_path):
    order = {"argv": ["./no-such-server"], "cwd": None, "grace": 1, "stop": []}
    done = subprocess.run(
        [sys.executable, launch_guard.__file__, json.dumps(order)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (127, "./no-such-server: No such file or directory\n")
