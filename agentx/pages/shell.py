"""One HTML file that holds all it shows: no script runs, nothing is fetched, and it is read with the keyboard alone.

Every chart has its table behind it. The JSON document is inside, as data, so that a page can be read by programs too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

ICON = '<link rel="icon" href="data:,">'  # without it a browser asks the server of a page for one
STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#5b6570;--grid:#e4e7eb;--card:#f5f6f8;--bad:#b3261e;
--ok:#1a7f37;--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#a07400;--c5:#56b4e9}
@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e9ed;--soft:#9aa4af;--grid:#2c333b;--card:#1d2228;
--bad:#ff8a80;--ok:#6fdd8b;--c0:#4aa8e0;--c1:#ff8c42;--c2:#3ccf9f;--c3:#e6a0c8;--c4:#e0b84a;--c5:#8fd3ff}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif}
main,header,nav{max-width:56rem;margin:0 auto;padding:0 1rem}h1{font-size:1.5rem;margin:1.2rem 0 .3rem}
h2{font-size:1.15rem;margin:2.2rem 0 .5rem;border-top:1px solid var(--grid);padding-top:1rem}
p{margin:.4rem 0}.soft{color:var(--soft)}.bad{color:var(--bad)}.ok{color:var(--ok)}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1rem;list-style:none;padding:0;margin:.5rem 0}a{color:var(--c0)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(11rem,1fr));gap:.6rem;margin:1rem 0}
.tile{background:var(--card);border-radius:.5rem;padding:.6rem .8rem}.tile b{display:block;font-size:1.35rem}
.tile span{color:var(--soft);font-size:.85rem}figure{margin:.5rem 0 1.2rem}figcaption{color:var(--soft);font-size:.9rem}
svg{width:100%;height:auto;display:block}.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.88rem}
th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child{text-align:left}summary{cursor:pointer;color:var(--soft);font-size:.9rem}
svg .t{fill:var(--soft);font-size:12px}svg .g{stroke:var(--grid)}svg .a{stroke:var(--soft)}
@media(max-width:44rem){figure{overflow-x:auto}svg{min-width:36rem}}
svg .l{fill:none;stroke-width:2}svg .m{stroke:var(--fg);stroke-dasharray:4 3}svg .d{fill-opacity:.55}
"""
_COLOURS = "".join(f"svg .l.c{n}{{stroke:var(--c{n})}}svg .f.c{n},svg .d.c{n}{{fill:var(--c{n})}}" for n in range(6))
ROWS = 200  # of a table behind a chart


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page. `body` is HTML."""

    title: str
    body: str

    @property
    def anchor(self) -> str:
        return "".join(each if each.isalnum() else "-" for each in self.title.lower())


def page(title: str, lead: str, sections: Sequence[Section], document: dict[str, Any]) -> str:
    """The whole file. `lead` is HTML that stands before all sections."""
    links = "".join(f'<li><a href="#{one.anchor}">{escape(one.title)}</a></li>' for one in sections)
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"{ICON}<title>{escape(title)}</title><style>{STYLE}{_COLOURS}</style></head><body>",
        f'<header><h1>{escape(title)}</h1>{lead}</header><nav aria-label="parts"><ul>{links}</ul></nav><main>',
        *(f'<section id="{one.anchor}"><h2>{escape(one.title)}</h2>{one.body}</section>' for one in sections),
        f'</main><script type="application/json" id="document">{_data(document)}</script></body></html>\n',
    ]
    return "\n".join(parts)


def _data(document: dict[str, Any]) -> str:
    """JSON that cannot end its element: `<` is written as an escape."""
    return json.dumps(document, allow_nan=False).replace("<", "\\u003c")


def figure(chart: str, caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A chart, what it shows, and its values."""
    more = f'<p class="soft">{len(rows) - ROWS:,} more rows are not shown.</p>' if len(rows) > ROWS else ""
    return (
        f"<figure>{chart}<figcaption>{escape(caption)}</figcaption>"
        f"<details><summary>Values</summary>{table(columns, rows[:ROWS])}{more}</details></figure>"
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(_cell(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(value: object) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def tiles(values: Sequence[tuple[str, str, str]]) -> str:
    """(key of the document, value as shown, what it is) of the figures that matter most."""
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile" data-key="{escape(key, quote=True)}"><b>{escape(shown)}</b>'
            f"<span>{escape(what)}</span></div>"
            for key, shown, what in values
        )
        + "</div>"
    )


def listed(lines: Sequence[str], kind: str = "") -> str:
    """Sentences as a list."""
    return "<ul>" + "".join(f'<li class="{kind}">{escape(line)}</li>' for line in lines) + "</ul>" if lines else ""
