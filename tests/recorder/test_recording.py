"""The proxy and the writer together: the books at the end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from proxying import body_of, head_of, post, upstream_of

from agentx.errors import BadInput
from agentx.recorder.capture_reader import CaptureReader
from agentx.recorder.profile import Profile
from agentx.recorder.recording import Recording, record, summary, what_next

PROFILE = Profile(paths={"/v1/messages": "messages"})


async def run(tmp_path: Path, requests: list[bytes], **more: object) -> tuple[dict[str, object], list[str]]:
    """Record some requests against an upstream that answers each with {}; the counters and the warnings."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    warnings: list[str] = []
    async with upstream_of(handler) as port:
        wanted = Recording(
            "test", PROFILE, f"http://127.0.0.1:{port}", tmp_path / "cap", key_file=tmp_path / "key", **more
        )  # type: ignore[arg-type]
        started, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
        task = asyncio.ensure_future(record(wanted, ready=started.set_result, stop=stop, warn=warnings.append))
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        url = started.result()
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
            writer.write(request)
            await body_of(reader, await head_of(reader))
            writer.close()
        stop.set()
        return await task, warnings


async def test_the_counters(tmp_path: Path) -> None:
    counters, warnings = await run(tmp_path, [post("/v1/messages", b"12345"), post("/health", b"1")])
    assert (counters["calls"], counters["answered"]) == (1, 1)
    assert {key: counters[key] for key in ("exchanges", "ends", "recorded", "not_recorded", "request_bytes")} == {
        "exchanges": 2, "ends": {"done": 2}, "recorded": 2, "not_recorded": 0, "request_bytes": 6,
    }  # fmt: skip
    assert warnings == []
    manifest = json.loads((tmp_path / "cap" / "manifest.json").read_text())
    assert manifest["runs"][0]["counters"] == counters
    assert manifest["runs"][0]["closed"] is True
    lines = summary(counters)
    assert lines[0] == "exchanges   2 (2 done)"
    assert not any(line.startswith("LOST") for line in lines)


async def test_a_writer_that_is_behind_is_said_and_counted(tmp_path: Path) -> None:
    body = b"x" * 100_000
    counters, warnings = await run(tmp_path, [post("/v1/messages", body)], queue_bytes=1000)
    assert counters["dropped_bytes"] == len(body)
    assert (counters["recorded"], counters["incomplete"]) == (1, 1)
    assert any("DROPPED" in text for text in warnings)
    assert summary(counters)[-1].startswith("LOST        0 exchanges not recorded, 100,000 bytes dropped")
    (exchange,) = CaptureReader(tmp_path / "cap")
    assert (exchange.body, exchange.reply, exchange.why) == (None, b"{}", "the writer was behind")


async def test_a_port_in_use(tmp_path: Path) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        return

    async with upstream_of(handler) as port:
        with pytest.raises(BadInput, match=f"port {port}.*--port 0"):
            await run(tmp_path, [], port=port)
    assert not (tmp_path / "cap").exists()


OWN = PROFILE.model_copy(update={"environment": {"ANTHROPIC_BASE_URL": "{url}"}})
NEXT = [  # exchanges, calls, answered
    ((3, 2, 1), OWN, None, "next: agentx compile some/cap -o some/cap.trace"),
    ((3, 2, 1), OWN, Path("k"), "next: agentx compile some/cap -o some/cap.trace --key k"),
    ((0, 0, 0), OWN, None, "nothing came through: is ANTHROPIC_BASE_URL set where the client runs?"),
    ((0, 0, 0), PROFILE, None, "nothing came through"),
    ((3, 0, 0), OWN, None, "no model call among them: no path ended in /v1/messages"),
    ((3, 2, 0), OWN, None, "no call was answered: are upstream and base URL right, with and without /v1? (http://x)"),
]


@pytest.mark.parametrize(("counts", "profile", "key", "said"), NEXT)
def test_what_to_do_next(counts: tuple[int, int, int], profile: Profile, key: Path | None, said: str) -> None:
    counters = dict(zip(("exchanges", "calls", "answered"), counts, strict=True))
    assert what_next(counters, Recording("test", profile, "http://x", Path("some/cap"), key_file=key)) == said
