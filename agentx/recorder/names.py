"""Names that a trace may carry: those of tools and roles that everybody has, and numbers for all others.

The name of a tool, a subagent's role or a model can name a customer, a product or a fine-tune. Tools and roles that
public agents ship keep theirs; every other one and every model is numbered in the order of its first appearance.
"""

from __future__ import annotations

_PUBLIC = """
Agent AskUserQuestion Bash BashOutput Edit ExitPlanMode Glob Grep KillShell LS MultiEdit NotebookEdit Read Skill Task
TodoWrite WebFetch WebSearch Write apply_patch bash browser edit exec_command execute_bash file_search finish glob grep
list_files local_shell ls patch read read_file replace run_shell_command search search_files shell spawn_agent
str_replace_editor task think todowrite update_plan view_image wait web_fetch web_search webfetch write write_file
write_stdin
"""
_ROLES = """
Explore Plan collab_spawn compact general-purpose memory_consolidation output-style-setup review statusline-setup
thread_spawn
"""
PUBLIC_TOOLS, PUBLIC_ROLES = frozenset(_PUBLIC.split()), frozenset(_ROLES.split())


class Names:
    """Numbers names as they come."""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}
        self._models: dict[str, str] = {}
        self._roles: dict[str, str] = {}

    def tool(self, name: str) -> str:
        return name if name in PUBLIC_TOOLS else self._tools.setdefault(name, f"tool-{len(self._tools) + 1}")

    def role(self, name: str) -> str:
        """A subagent's role."""
        return name if name in PUBLIC_ROLES else self._roles.setdefault(name, f"role-{len(self._roles) + 1}")

    def model(self, name: str) -> str | None:
        return self._models.setdefault(name, f"model-{len(self._models) + 1}") if name else None
