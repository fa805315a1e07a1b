"""The golden file: hits that SGLang's own cache classes gave, request by request (benchmarks/fidelity)."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = (ROOT / "tests" / "data" / "fidelity-v1.jsonl").read_text().splitlines()


def _cases() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fidelity_cases", ROOT / "benchmarks" / "fidelity" / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


cases = _cases()


@pytest.mark.parametrize("number", range(len(GOLDEN)))
def test_every_request_hits_what_sglang_hits(number: int) -> None:
    case, right = cases.from_line(GOLDEN[number])
    assert cases.play(case) == right, case.name


def test_the_golden_file_covers_what_it_should() -> None:
    golden = [cases.from_line(line) for line in GOLDEN]
    assert len({case.name.replace(f"seed={case.seed}", "") for case, _ in golden}) >= 60
    for wanted in (
        lambda case: case.page == 1,
        lambda case: case.page == 16,
        lambda case: case.page == 64,
        lambda case: case.host and case.write == "write_through",
        lambda case: case.write == "write_through_selective",
        lambda case: case.write == "write_back",
        lambda case: case.chunk,
        lambda case: case.algorithm == "EAGLE",
        lambda case: case.algorithm == "NGRAM",
        lambda case: case.bigram,
        lambda case: case.family == "engine",
    ):
        chosen = [answer for case, answer in golden if wanted(case)]
        assert sum(sum(answer.device) for answer in chosen) > 1000
    assert sum(sum(answer.host) for _, answer in golden) > 10_000
