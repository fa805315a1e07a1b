"""What is known of a launched server before it starts and after it has ended."""

from __future__ import annotations

import hashlib

import pytest

from agentx.replayer import launch
from agentx.replayer.gpus import Gpu
from agentx.replayer.launch import config_digest, image_digest, last_lines


def test_the_end_of_a_log(tmp_path):
    log = tmp_path / "launch.log"
    assert "cannot be read: No such file" in last_lines(log)
    log.write_text("agentx: sh was started\n\n")
    assert last_lines(log) == f"it wrote nothing to {log}"
    log.write_bytes(b"agentx: sh was started\n" + b"".join(b"line %d \xff\n" % at for at in range(20)))
    lines = last_lines(log).splitlines()
    assert lines[0] == f"the end of {log}:"
    assert (lines[1], lines[-1], len(lines)) == ("    line 5 \ufffd", "    line 19 \ufffd", 16)


def test_a_log_without_end_is_read_at_its_end(tmp_path):
    log = tmp_path / "launch.log"
    log.write_bytes(b"x" * 200_000 + b"\nlast\n")
    assert last_lines(log).endswith("\n    last")


def test_the_digest_of_an_image(tmp_path, monkeypatch):
    assert image_digest(None) is None
    assert image_digest("rocm/sgl:v1@sha256:abc") == "sha256:abc"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nexit 1\n")
    docker.chmod(0o755)
    (tmp_path / "podman").write_text('#!/bin/sh\ntest "$5" = rocm/sgl:v1 && echo rocm/sgl@sha256:def\n')
    (tmp_path / "podman").chmod(0o755)
    assert image_digest("rocm/sgl:v1") == "sha256:def"
    assert image_digest("rocm/other") is None


def test_the_digest_of_a_model(tmp_path):
    assert config_digest(None) is None
    assert config_digest(str(tmp_path)) is None
    (tmp_path / "config.json").write_text('{"hidden_size": 64}')
    assert config_digest(str(tmp_path)) == hashlib.sha256(b'{"hidden_size": 64}').hexdigest()


GB = 1 << 30
FREED = [
    # what the GPUs use at each look, seconds that may pass, what is said
    ([[1 * GB, 1 * GB]], 10.0, "free again after"),
    ([[90 * GB, 1 * GB], [40 * GB, 1 * GB], [1 * GB, 1 * GB]], 10.0, "free again after"),
    ([[90 * GB, 1 * GB]] * 50, 0.0, "a GPU still uses 95.6 GB more than before the run"),
    ([None], 10.0, "is not known"),
    ([[1 * GB]], 10.0, "is not known"),  # a GPU is gone
]


@pytest.mark.parametrize(("looks", "longest", "says"), FREED)
async def test_waiting_for_free_memory(looks, longest, says, monkeypatch):
    seen = iter(looks)

    def here():
        used = next(seen)
        return None if used is None else ("smi", [Gpu("g", each, 256 * GB) for each in used])

    async def no_time(_):
        return None

    monkeypatch.setattr(launch, "gpus_here", here)
    monkeypatch.setattr(launch, "FREE", longest)
    monkeypatch.setattr(launch.asyncio, "sleep", no_time)
    assert says in await launch._freed([1 * GB, 1 * GB])
