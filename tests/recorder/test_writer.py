"""From events to a capture and back: bodies, times, credentials, and what a failing disk costs."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import json
from pathlib import Path

import pytest

from agentx.recorder import segments as segments_module
from agentx.recorder import writer as writer_module
from agentx.recorder.capture import recording
from agentx.recorder.capture_reader import CaptureReader, Exchange
from agentx.recorder.copies import Copies, Copy, Opened
from agentx.recorder.segments import Segments
from agentx.recorder.writer import Writer

KEY = "sk-test-0123456789abcdef"
AUTH = [("Authorization", f"Bearer {KEY}"), ("X-Claude-Code-Session-Id", "session-one")]


class Bench:
    """A writer without its thread: `group` is called when a test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.warnings = folder, list[str]()
        self._context = recording(folder / "cap", {}, folder / "key")
        capture = self._context.__enter__()
        self.key = capture.key
        self.copies = Copies()
        segments = Segments(capture.folder, {"capture": capture.id, "run": capture.run}, "none")
        self.segments = segments
        self.writer = Writer(self.copies, segments, capture.key, (), self.warnings.append)

    def open(self, headers: list[tuple[str, str]] = AUTH, target: str = "/v1/messages", wire: str = "messages") -> Copy:
        return self.copies.open(Opened("POST", target, headers, wire, 1))

    def call(self, body: bytes, reply: bytes, **more: object) -> None:
        copy = self.open(**more)  # type: ignore[arg-type]
        copy.request(body)
        copy.asked()
        copy.head(200, [("Content-Type", "text/event-stream"), ("X-Secret", KEY)])
        for at in range(0, len(reply), 7):
            copy.data(reply[at : at + 7])
        copy.end("done")

    def read(self) -> list[Exchange]:
        self.writer.group()
        self.segments.close()
        self._context.__exit__(None, None, None)
        self.reader = CaptureReader(self.folder / "cap")
        return list(self.reader)

    def files(self) -> bytes:
        return b"".join(path.read_bytes() for path in (self.folder / "cap").iterdir())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_an_exchange_comes_back(bench: Bench) -> None:
    body, reply = b'{"messages":[{"a":1},{"b":2}]}', b"data: 1\n\n" * 200
    bench.call(body, reply)
    (exchange,) = bench.read()
    assert (exchange.body, exchange.reply, exchange.cause, exchange.why) == (body, reply, "done", "")
    assert exchange.opened <= (exchange.asked or 0) <= (exchange.head or 0) <= exchange.chunks[0].at
    assert [chunk.bytes for chunk in exchange.chunks[:2]] == [7, 7]
    assert exchange.ids == (("x-claude-code-session-id", bench.key.pseudonym("id", "session-one")),)
    assert exchange.reply_headers == (("content-type", "text/event-stream"),)
    assert bench.reader.fragments == 0


def test_many_exchanges_interleaved(bench: Bench) -> None:
    """Each has its own; parts that occur again are stored once."""
    long = [json.dumps({"messages": [{"n": i, "text": "x" * 500} for i in range(k)]}).encode() for k in range(1, 40)]
    copies = [bench.open() for _ in long]
    for copy, body in zip(copies, long, strict=True):
        copy.request(body[:100])
    bench.writer.group()
    for copy, body in zip(copies, long, strict=True):
        copy.request(body[100:])
        copy.asked()
        copy.head(200, [])
    for number, copy in enumerate(copies):
        copy.data(b"%d" % number)
        copy.end("done")
    exchanges = bench.read()
    assert [exchange.body for exchange in exchanges] == long
    assert [exchange.reply for exchange in exchanges] == [b"%d" % number for number in range(39)]
    assert sum(map(len, long)) > 400_000
    assert len(bench.files()) < 60_000


@pytest.mark.parametrize(
    "place",
    ["header", "query", "body", "reply", "reply split", "gzip reply", "gzip body", "path", "error detail", "cookie"],
)
def test_credentials_are_never_written(bench: Bench, place: str) -> None:
    """R20, R21: nor a piece of one, nor a hash that others could compute."""
    headers = [("Cookie", f"s={KEY}")] if place == "cookie" else AUTH
    headers = [*headers, ("Content-Encoding", "gzip")] if place == "gzip body" else headers
    target = {"query": f"/v1/messages?key={KEY}", "path": f"/v1/{KEY}/messages"}.get(place, "/v1/messages")
    body = json.dumps({"messages": [{"role": "tool", "content": f"env says {KEY}"}]}).encode()
    copy = bench.copies.open(Opened("POST", target, headers, "messages", 1))
    copy.request(gzip.compress(body) if place == "gzip body" else body)
    copy.asked()
    reply = f'{{"error": "the key {KEY} is wrong"}}'.encode()
    if place == "gzip reply":
        copy.head(401, [("Content-Encoding", "gzip")])
        reply = gzip.compress(reply)
    else:
        copy.head(401, [("Set-Cookie", f"s={KEY}")])
    step = 3 if place == "reply split" else len(reply)
    for at in range(0, len(reply), step):
        copy.data(reply[at : at + step])
    copy.end("upstream_abort", f"reset {KEY}" if place == "error detail" else "")
    (exchange,) = bench.read()
    texts = [bench.files(), exchange.body or b"", exchange.reply, exchange.path.encode(), exchange.detail.encode()]
    texts += [gzip.decompress(data) for data in (exchange.body or b"", exchange.reply) if data[:2] == b"\x1f\x8b"]
    whole = b"".join(texts)
    banned = [KEY[i : i + 8].encode() for i in range(len(KEY) - 7)]
    banned += [hashlib.sha256(KEY.encode()).hexdigest().encode(), base64.b64encode(KEY.encode())]
    assert [piece for piece in banned if piece in whole] == []
    if place not in ("gzip reply", "gzip body"):
        assert exchange.reply.startswith(b'{"error": "the key ****')


def test_the_same_scan_finds_a_key_in_clear(bench: Bench) -> None:
    """A key that is nobody's credential is content, and the capture holds content."""
    bench.call(f'{{"content":"{KEY}"}}'.encode(), b"{}", headers=[])
    bench.read()
    assert KEY.encode() in bench.files()


def test_bytes_that_are_no_text(bench: Bench) -> None:
    """A client may send any byte in a header or a query; the capture goes on."""
    headers = [("User-Agent", "\udcff"), ("X-Session-Id", "\udcff"), ("Authorization", "Bearer \udcff12345678")]
    bench.call(b"\xff\xfe", b"\xff", headers=headers, target="/v1/messages?\udcff=1&beta=\udcff")
    (exchange,) = bench.read()
    assert (exchange.body, exchange.reply, exchange.query) == (b"\xff\xfe", b"\xff", ("\ufffd", "beta=\ufffd"))


def no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_loses_its_groups_and_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentx.recorder.writer.CALM", 0.0)
    body = json.dumps({"messages": [{"n": n, "text": "y" * 100} for n in range(20)]}).encode()
    bench.call(body, b"one")
    begun = bench.open()
    bench.writer.group()
    across = bench.open()
    across.request(body[:50])
    with monkeypatch.context() as patch:
        patch.setattr(segments_module, "_put", no_space)
        bench.call(body, b"two")
        bench.writer.group()
        bench.call(body, b"three")
        bench.writer.group()
    across.request(body[50:])
    for one in (across, begun):
        one.asked()
        one.head(200, [])
        one.end("done")
    bench.call(body, b"four")
    exchanges = bench.read()
    assert [(exchange.reply, exchange.why) for exchange in exchanges] == [
        (b"one", ""), (b"", "the disk failed"), (b"four", ""),
    ]  # fmt: skip
    tally = bench.writer.tally
    assert (tally.failures, tally.recorded, bench.copies.tally.exchanges) == (2, len(exchanges), 6)
    assert tally.incomplete == 1  # the one that was open across the failure; that whose beginning is lost is none
    assert bench.reader.fragments == 0
    assert [text.split(":")[1].strip()[:30] for text in bench.warnings] == [
        "the capture cannot be written", "the capture is being written a",
    ]  # fmt: skip


def test_a_disk_that_stays_full_is_said_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small groups still find room on it now and then."""
    for _ in range(5):
        with monkeypatch.context() as patch:
            patch.setattr(segments_module, "_put", no_space)
            bench.call(b"{}", b"lost")
            bench.writer.group()
        bench.call(b"{}", b"kept")
        bench.writer.group()
    assert len(bench.read()) == bench.writer.tally.recorded == 5
    assert len(bench.warnings) == 1


def test_a_bug_ends_the_writing_but_not_the_silence(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread's error is said at once and raised at the end; traffic's side never sees it."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(writer_module, "encode", broken)
    bench.writer.start()
    bench.call(b"{}", b"{}")
    bench.writer._thread.join(5)
    bench.call(b"{}", b"{}")
    assert "NOT RECORDED" in bench.warnings[0]
    with pytest.raises(ZeroDivisionError):
        bench.writer.stop()


def test_an_endless_stream_is_written_as_it_comes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory does not grow with it, and what is over the limit is cut and said."""
    monkeypatch.setattr(writer_module, "MAX_BODY", 1_000_000)
    copy = bench.open([])
    copy.request(b"{}")
    copy.asked()
    copy.head(200, [])
    for number in range(30):
        copy.data(bytes([number]) * 50_000)
        bench.writer.group()
    live = next(iter(bench.writer._live.values()))
    assert live.held < writer_module.PIECE + 50_000
    copy.end("client_abort")
    (exchange,) = bench.read()
    assert len(exchange.reply) == 1_000_000
    assert sum(chunk.bytes for chunk in exchange.chunks) == 1_500_000
    assert "over 1000000 bytes" in exchange.why


def test_a_killed_recorder_leaves_open_exchanges_that_say_so(bench: Bench) -> None:
    bench.call(b'{"a":1}', b"whole")
    copy = bench.open()
    copy.request(b'{"b":2}')
    copy.asked()
    exchanges = bench.read()
    assert [(e.cause, e.body, e.why) for e in exchanges] == [
        ("done", b'{"a":1}', ""),
        ("recorder_crash", b'{"b":2}', "its end is not on record"),
    ]


@pytest.mark.parametrize("keep", range(0, 2000, 97))
def test_a_torn_tail_costs_only_itself(tmp_path: Path, keep: int) -> None:
    """Cut anywhere: what is whole is read, the tear is reported, the next run's segment follows."""
    bench = Bench(tmp_path)
    for number in range(5):
        bench.call(b'{"n":%d}' % number, b"reply")
    bench.read()
    segment = tmp_path / "cap" / "seg-000001.rec"
    segment.write_bytes(segment.read_bytes()[:keep])
    again = Bench(tmp_path)
    again.call(b'{"n":99}', b"reply")
    bodies = [exchange.body for exchange in again.read() if exchange.cause == "done"]
    assert bodies[-1] == b'{"n":99}'
    assert bodies[:-1] == [b'{"n":%d}' % number for number in range(len(bodies) - 1)]
