"""Factories of the generator tests: a small spec to change, one that has everything, and how a prompt looks."""

from __future__ import annotations

from agentx.core import Session, Turn
from agentx.generator.sessions import sessions
from agentx.generator.spec import WorkloadSpec, load_spec

FIXED = """\
agentx: workload/1
context_limit: 100000
layers: {tools: 100, system: 50}
turns: {user: 3, loop: 3}
tokens: {first_message: 80, message: 20, tool_result: 60, reply: 30}
gaps: {human: 30s, tools: {shell: {weight: 1, time: 2s}}}
"""

EVERYTHING = """\
agentx: workload/1
context_limit: 6000
layers:
  tools: 100
  system: 50
  repos: {count: 3, tokens: {uniform: {low: 200, high: 400}}, zipf: 1}
  files: {count: {uniform: {low: 0, high: 3}}, tokens: 70}
  documents: {count: 5, tokens: 40, each: {uniform: {low: 0, high: 2}}}
turns: {user: {geometric: {mean: 4}}, loop: {geometric: {mean: 4}}, parallel: {geometric: {mean: 1.5}}}
tokens:
  first_message: 80
  message: 20
  tool_result: {lognormal: {median: 60, sigma: 1}}
  reply: {by_gap: {tool: {lognormal: {median: 30, sigma: 0.5}}, human: 50}}
  reasoning: {uniform: {low: 0, high: 20}}
  strip_reasoning: true
gaps:
  human: {lognormal: {median: 30s, sigma: 1}}
  tools:
    shell: {weight: 0.7, time: {lognormal: {median: 400ms, sigma: 2}, max: 1m}}
    read: {weight: 0.3, time: 30ms, result: 25}
subagents:
  share: 0.2
  count: {geometric: {mean: 1.5}, max: 3}
  depth: 2
  types:
    Explore: {weight: 0.7, tools: 60, system: 20, prompt: 40, turns: {geometric: {mean: 3}}, report: 55}
    general: {weight: 0.3, tools: 70, prompt: 40, turns: 2, report: 30, spawns: 0.3, reply: 9, model: small}
compaction: {trigger: {uniform: {low: 1500, high: 3000}}, share: 0.8, keep: [tools, system, shared], summary: 200}
resumed: {share: 0.3, tokens: 900}
resets: {share: 0.1}
pull_backs: {share: 0.2, lost: {uniform: {low: 0.05, high: 0.5}}, rewritten: 0.5}
aborts: {share: 0.1, kept: {uniform: {low: 0, high: 1}}}
side_calls:
  title: {at: start, system: 30, prompt: 90, reply: 8, model: small}
  topic: {at: message, share: 0.5, prompt: 30, reply: 3}
  summary: {at: compaction, context: whole, prompt: 15, reply: 120, waits: true}
models: {weights: {big: 0.8, other: 0.2}, switch: 0.2}
arrivals: {kind: gamma, per_second: 0.5, cv: 2}
"""


def made(text: str, *sets: str) -> WorkloadSpec:
    return load_spec("spec.yaml", text=text, sets=sets)


def one(*sets: str, text: str = FIXED, seed: int = 0) -> Session:
    """The first session of a spec."""
    return next(sessions(made(text, *sets), seed, 1))


def layers(session: Session, index: int) -> list[str]:
    return [session.segment(piece.segment).layer for piece in session.pieces(index)]


def of_thread(session: Session, thread: int) -> list[Turn]:
    return [turn for turn in session.turns if turn.thread == thread]


def kept(session: Session, turn: Turn) -> int:
    """Tokens of its base's prompt that a turn keeps."""
    return turn.isl - sum(piece.tokens for piece in turn.prompt.append)
