"""Runs of an engine with known constants, simulated: the folders that a calibration reads."""

from __future__ import annotations

from pathlib import Path

from agentx import catalog
from agentx.cutting import Limits, cut
from agentx.generator.spec import load_spec
from agentx.generator.write import generate
from agentx.replayer.simulate import simulate


def agents(folder: Path, *, sessions: int = 8, turns: int = 8, seed: int = 3, reply: int = 20) -> Path:
    """A trace of coding agents; with replies of median `reply` tokens, short ones take few steps to simulate."""
    spec = load_spec(
        catalog.resolve("workloads", "coding-agent"),
        sets=[f"tokens.reply={{lognormal: {{median: {reply}, sigma: 0.5}}, min: 8, max: 400}}"],
    )
    whole = generate(spec, seed=seed, sessions=sessions, out=folder / "whole.trace", name="agents")
    trace = folder / "agents.trace"
    cut(whole, trace, Limits(turns=turns))
    return trace


def run_of(trace: Path, folder: Path, target: str, *, lanes: int = 2) -> Path:
    """Play `trace` on the engine that `target` (YAML without its head) describes, into a run folder."""
    file = folder.parent / f"{folder.name}.yaml"
    file.write_text(f"agentx: target/1\nkind: engine\n{target}")
    sets = [f"load.sessions={lanes}", "gaps.scale=0.05", "gaps.tree_idle_cap=1s"]
    simulate(trace, target=str(file), out=folder, sets=sets)
    return folder
