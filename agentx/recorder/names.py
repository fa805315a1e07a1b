"""Names that a trace may carry: those of tools that everybody has, and numbers for all others.

The name of a tool or a model can name a customer, a product or a fine-tune. Tools that public agents ship keep
theirs; every other tool and every model is numbered in the order of its first appearance.
"""

from __future__ import annotations

_PUBLIC = """
Agent AskUserQuestion Bash BashOutput Edit ExitPlanMode Glob Grep KillShell LS MultiEdit NotebookEdit Read Skill Task
TodoWrite WebFetch WebSearch Write apply_patch bash browser edit exec_command execute_bash file_search finish glob grep
list_files local_shell ls patch read read_file replace run_shell_command search search_files shell spawn_agent
str_replace_editor task think todowrite update_plan view_image wait web_fetch web_search webfetch write write_file
write_stdin
"""
PUBLIC_TOOLS = frozenset(_PUBLIC.split())


class Names:
    """Numbers names as they come."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._models: dict[str, str] = {}

    def tool(self, name: str) -> str:
        return name if name in PUBLIC_TOOLS else self._tools.setdefault(name, f"tool-{len(self._tools) + 1}")

    def model(self, name: str) -> str | None:
        return self._models.setdefault(name, f"model-{len(self._models) + 1}") if name else None
