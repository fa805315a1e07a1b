"""A headless Chromium over its DevTools protocol: what a page says on its console, asks for, and shows."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

BROWSER = os.environ.get("AGENTX_BROWSER") or next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
MISSING = "no Chromium is found, and AGENTX_BROWSER names none"
PATIENCE = 60.0  # s until a page must have come
_WORDS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-port=0")
_ALONE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"  # nothing of a test reaches a network
ROWS = "[...document.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))"
DRAWN = "document.querySelectorAll('figure > svg').length"
TILES = "[...document.querySelectorAll('.tile')].map(one => [one.dataset.key, one.querySelector('b').innerText])"
_CONTRAST = """(() => {
const channels = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
const style = getComputedStyle(document.body);
const paper = light(channels(style.backgroundColor));
const inks = [style.color, ...[...document.querySelectorAll("figure svg .t")].map(one => getComputedStyle(one).fill)];
const against = inks.map(ink => light(channels(ink))).map(ink =>
  (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05));
return {paper, contrast: Math.min(...against)};
})()"""


@dataclass
class Seen:
    """A page that came: what it said (console, exceptions, failed loads), every address that it asked for, and values
    of its DOM by the expressions that asked for them."""

    said: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    @property
    def paper(self) -> float:
        """Luminance of the background, 0 ... 1."""
        return float(self.values[_CONTRAST]["paper"])

    @property
    def contrast(self) -> float:
        """The least contrast of body text and of charts' words with the background; readable from 4.5 (WCAG 2, AA)."""
        return float(self.values[_CONTRAST]["contrast"])


class Browser:
    """One process for all pages, each in a tab of its own."""

    def __init__(self, profile: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = subprocess.Popen(
            [str(BROWSER), *_WORDS, _ALONE, f"--user-data-dir={profile}", "about:blank"], stderr=subprocess.DEVNULL
        )
        self._address = self._do(_address(profile / "DevToolsActivePort"))

    def open(self, url: str, *asked: str, until: str = "true", dark: bool = False) -> Seen:
        """Go there, wait until the page is whole and `until` holds, and ask for the values of expressions."""
        return self._do(_open(self._address, url, (*asked, _CONTRAST), until, dark))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asyncio.wait_for(work, 2 * PATIENCE))


async def _address(file: Path) -> str:
    while not file.exists() or len(file.read_text().splitlines()) < 2:
        await asyncio.sleep(0.02)
    port, path = file.read_text().splitlines()[:2]
    return f"ws://127.0.0.1:{port}{path}"


async def _open(address: str, url: str, asked: tuple[str, ...], until: str, dark: bool) -> Seen:
    async with aiohttp.ClientSession() as client, client.ws_connect(address, max_msg_size=0) as socket:
        tab = _Tab(socket)
        target = (await tab.call("Target.createTarget", url="about:blank"))["targetId"]
        tab.session = (await tab.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            await tab.call(f"{domain}.enable")
        wanted = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        await tab.call("Emulation.setEmulatedMedia", features=wanted)
        await tab.call("Page.navigate", url=url)
        stop = time.monotonic() + PATIENCE
        whole = f"location.href !== 'about:blank' && document.readyState === 'complete' && Boolean({until})"
        while await tab.value(whole) is not True:
            assert time.monotonic() < stop, f"{url} does not come to {until}; it said {tab.seen.said}"
            await asyncio.sleep(0.05)
        tab.seen.values = {expression: await tab.value(expression) for expression in asked}
        tab.session = None
        await tab.call("Target.closeTarget", targetId=target)
        return tab.seen


class _Tab:
    """Calls and their answers; what comes in between is noted."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.session: str | None = None
        self.seen = Seen()
        self._socket, self._calls = socket, 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._calls += 1
        session = {} if self.session is None else {"sessionId": self.session}
        await self._socket.send_json({"id": self._calls, "method": method, "params": parameters, **session})
        while True:
            answer: dict[str, Any] = await self._socket.receive_json()
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer.get("method"), answer.get("params", {}))

    async def value(self, expression: str) -> Any:
        """None for what throws, as everything may while a page goes to another one."""
        found = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value") if "exceptionDetails" not in found else None

    def _note(self, method: str | None, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            url = told["request"]["url"]
            self.seen.requested += [] if url.startswith("data:") else [url]  # which is in the page
        elif method == "Runtime.consoleAPICalled":
            self.seen.said.append(" ".join(str(one.get("value")) for one in told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.seen.said.append(str(told["exceptionDetails"].get("exception", told)))
        elif method == "Log.entryAdded":
            self.seen.said.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
