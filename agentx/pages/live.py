"""A run as it goes on, on a page of this machine alone; when the run is over, the page becomes its report.

The server is a thread of its own, and answers from what the run has counted: a look costs the run next to nothing, and
nothing of it waits for a reader. The page asks once a second; it fetches from nowhere else.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agentx.errors import BadInput
from agentx.pages.shell import ICON, STYLE

LINGER = 3.0  # s that the page of a finished run stays for a reader who has not seen it, where no terminal waits
_SCRIPT = """
const names=[["in_flight","requests in flight",0],["turns","turns answered or failed",0],["failed","failed",0],
["plays","whole plays",0],["output_tokens_per_second","output, tok/s, last 10 s",1],["reuse","reuse so far, %",1,100],
["ttft_p50_seconds","TTFT p50, s, last 500 turns",3],["ttft_p95_seconds","TTFT p95, s, last 500 turns",3],
["loop_lag_p99_seconds","client's loop lag p99, ms",1,1000],["seconds","seconds of the run",0]];
async function look(){let state;try{state=await(await fetch("state")).json()}catch(e){
document.getElementById("said").textContent="The run's process does not answer any more.";return}
if(state.state==="done"){location.href="report";return}
document.getElementById("said").textContent=state.state+(state.plays_expected?", of "+state.plays_expected+" plays":"");
document.getElementById("tiles").innerHTML=names.map(([key,what,digits,times])=>{const value=state[key];
const shown=value===null||value===undefined?"unknown":(value*(times||1)).toLocaleString("en",
{maximumFractionDigits:digits});return`<div class="tile"><b>${shown}</b><span>${what}</span></div>`}).join("");
setTimeout(look,1000)}look();
"""
_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width,initial-scale=1"><title>agentx replay</title>'
    f"{ICON}<style>{STYLE}</style></head><body><header><h1>agentx replay</h1>"
    '<p id="said" class="soft" aria-live="polite">starting</p></header>'
    '<main><div id="tiles" class="tiles"></div></main>'
    f"<script>{_SCRIPT}</script></body></html>"
)


class LivePage:
    """Serves `ask()` until `finish` gives the report, which is then served too. Raises BadInput for a port in use."""

    def __init__(self, ask: Callable[[], dict[str, Any]], port: int = 0) -> None:
        self._ask, self._report = ask, ""
        self._seen = threading.Event()
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as error:
            raise BadInput(
                f"--live cannot listen on port {port}: {error.strerror}", hint="0 takes a free one"
            ) from None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True, name="agentx-live").start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    def finish(self, report: str) -> None:
        """The run is over: `report` is its page."""
        self._report = report

    def linger(self, until_interrupted: bool) -> None:
        """Stay for the reader: until Ctrl-C, or for LINGER seconds or the first look at the report."""
        try:
            if until_interrupted:
                while True:
                    time.sleep(3600)
            self._seen.wait(LINGER)
        except KeyboardInterrupt:
            return

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, path: str) -> tuple[str, str] | None:
        """(content type, text)."""
        if path == "/":
            return "text/html; charset=utf-8", _PAGE
        if path == "/state":
            return "application/json", json.dumps({"state": "done"} if self._report else self._ask())
        if path == "/report" and self._report:
            self._seen.set()
            return "text/html; charset=utf-8", self._report
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        answer = self._answer

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = answer(self.path.partition("?")[0])
                kind, text = found or ("text/plain", "not found\n")
                data = text.encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Nothing: stderr is the run's."""

        return Handler
