from __future__ import annotations

import re

from agentx.engine.replies import LONGEST, SHORTEST, natural_length, seed_of, words


def test_words_are_four_bytes_and_upper_case_first() -> None:
    text = words(seed_of(b"abcd"), 500).decode()
    assert re.fullmatch(r"(?: [A-Z][a-z][a-z]){500}", text)
    assert len(set(re.findall("....", text))) > 400


def test_a_longer_reply_begins_with_the_shorter() -> None:
    seed = seed_of(b"abcd")
    assert words(seed, 100).startswith(words(seed, 7))


def test_prompts_differ_in_reply_and_in_length() -> None:
    seeds = [seed_of(bytes([i]) * 4) for i in range(200)]
    assert len({words(seed, 4) for seed in seeds}) == 200
    lengths = [natural_length(seed) for seed in seeds]
    assert SHORTEST <= min(lengths) < 60
    assert 460 < max(lengths) <= LONGEST
