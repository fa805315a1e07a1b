"""Write the table of modules in structure.md anew, from the first sentence of each module's docstring.

python docs/modules.py
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "structure.md"
BEGIN, END = "<!-- modules: made by docs/modules.py -->\n", "<!-- end of modules -->\n"


def table() -> str:
    """One line per module, rooms in the order of their names."""
    lines = ["| module | what it is |", "|---|---|"]
    for path in sorted((ROOT / "agentx").rglob("*.py"), key=lambda path: (len(path.parts) > 2, path.parts)):
        name = path.relative_to(ROOT / "agentx").as_posix()
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        if text:
            sentence = " ".join(text.split("\n\n")[0].split())
            sentence = sentence.split(". ")[0].rstrip(".").replace("|", "\\|")
            lines.append(f"| `{name}` | {sentence} |")
    return "\n".join(lines) + "\n"


def filled(text: str) -> str:
    """The document with its table as it should be."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}{table()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text()))
