"""The loader reads pure data, and names every mistake with its place."""

from __future__ import annotations

import pathlib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx import yamldata, yamlspec
from agentx.errors import BadInput


class Cache(yamlspec.Strict):
    pool: int = 5
    policy: Literal["lru", "lfu"] = "lru"


class Target(yamlspec.Strict):
    need: int
    cache: Cache = Cache()
    stall: yamlspec.Duration = 30.0
    many: tuple[Cache, ...] = ()
    named: dict[str, Cache] | None = None
    maybe: Cache | None = None
    word: str = ""


def load(text: str, *sets: str) -> Target:
    return yamlspec.load(Target, "f.yaml", kind="target", text=text, sets=sets)


def complaint(text: str, *sets: str) -> str:
    with pytest.raises(BadInput) as caught:
        load(text, *sets)
    return str(caught.value)


HEAD = "agentx: target/1\nneed: 1\n"
REFUSED = [
    # (text, what the one line says)
    ("", "f.yaml: the file is empty"),
    ("# only a comment\n", "f.yaml: the file is empty"),
    ("[1]", "f.yaml:1: should be keys and values, not a list"),
    ("need: 1", "f.yaml:1: the first key must be 'agentx: target/1'"),
    ("need: 1\nagentx: target/1", "f.yaml:1: the first key must be"),
    ("agentx: replay/1", "f.yaml:1:1: agentx: replay/1 is not a target spec"),
    ("agentx: target/2", "f.yaml:1:1: agentx: target/2 is newer than this agentx reads (it reads target/1)"),
    ("agentx: target/one", "is not a version that this agentx reads"),
    ("agentx: target/1\n", "f.yaml:1:1: need: is missing"),
    (HEAD + "need: 2", "f.yaml:3:1: duplicate key 'need' (first on line 2)"),
    (HEAD + "cache: {pool: 1, pool: 2}", "f.yaml:3:18: duplicate key 'pool'"),
    (HEAD + "word: !!python/object/apply:os.system [ls]", "f.yaml:3:7: the YAML tag"),
    (HEAD + "word: !!str 5", "is not allowed: a spec is plain data"),
    (HEAD + "word: [1", "f.yaml:3:9: not YAML:"),
    (HEAD + "word: \x01", "f.yaml:3: not YAML: special characters"),
    (HEAD + "---\na: 1", "a second document"),
    (HEAD + "word: &a [*a]", "refers to no complete &a"),
    (HEAD + "word: *b", "*b refers to no complete &b"),
    (HEAD + "a: &a {x: 1}\nb: {<<: *a}", "merge keys (<<) are not supported"),
    (HEAD + "? [1]\n: 2", "a key must be plain text"),
    (HEAD + "word: " + "[" * 100, "nested deeper than 64 levels"),
    (HEAD + "word: [" + "".join(f"&a{n} 1," for n in range(200)) + "]", "more than 100 anchors"),
    (HEAD + "pol: 1", "f.yaml:3:1: pol: unknown key (known: cache, many, maybe, named, need, stall, word)"),
    (HEAD + "cache: {poll: 1}", "f.yaml:3:9: cache.poll: unknown key, did you mean 'pool'?"),
    (HEAD + '"a\\nb": 1', "f.yaml:3:1: 'a\\nb': unknown key"),
    (HEAD + "cache: 5", "f.yaml:3:1: cache: should be keys and values, not 5"),
    (HEAD + "cache: {policy: lrv}", "cache.policy: should be 'lru' or 'lfu', not 'lrv', did you mean 'lru'?"),
    (HEAD + "many:\n  - {}\n  - {poool: 1}", "f.yaml:5:6: many.1.poool: unknown key, did you mean 'pool'?"),
    (HEAD + "named: {a: {polisy: 1}}", "named.a.polisy: unknown key, did you mean 'policy'?"),
    (HEAD + "maybe: {polic: 1}", "maybe.polic: unknown key, did you mean 'policy'?"),
    (HEAD + "stall: 5", "f.yaml:3:1: stall: a duration needs a unit: write 5s or 5ms, not 5"),
    (HEAD + "stall: '5'", "a duration needs a unit: write 5s or 5ms"),
    (HEAD + "stall: 5 parsecs", "a number with a unit of ns, us, ms, s, m, h or d, not '5 parsecs'"),
    (HEAD + "stall: -5s", "should be a duration"),
]


@pytest.mark.parametrize(("text", "says"), REFUSED)
def test_refused_in_one_line(text: str, says: str) -> None:
    found = complaint(text)
    assert says in found
    assert "\n" not in found


def test_alias_bomb_is_refused_before_it_grows() -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    assert "more than 100000 values" in complaint("\n".join(rows))


def test_all_mistakes_at_once() -> None:
    found = complaint("agentx: target/1\ncache:\n  pool: many\n  size: 3\nstall: 5\n").splitlines()
    assert [line.split(" ")[0] for line in found] == ["f.yaml:1:1:", "f.yaml:3:3:", "f.yaml:4:3:", "f.yaml:5:1:"]


def test_scalars_mean_what_they_look_like() -> None:
    data = {}
    for text in ("1_000", "0.5", "1e3", "-2", "true", "null", "~", "on", "no", "1:30", "2024-01-01", "'7'", "none"):
        data[text] = yamldata.parse(text, "x")[0]
    assert list(data.values()) == [
        1000, 0.5, 1000.0, -2, True, None, None, "on", "no", "1:30", "2024-01-01", "7", "none",
    ]  # fmt: skip


def test_anchors_of_data_work_and_keep_the_place_of_their_definition() -> None:
    assert load(HEAD + "cache: &c {pool: 3}\nmany: [*c, *c]").many == (Cache(pool=3),) * 2
    assert "f.yaml:3:12: many.0.poll" in complaint(HEAD + "maybe: &c {poll: 3}\nmany: [*c]")


SETS = [
    # (--set arguments, field, value)
    (["cache.pool=7"], "cache", Cache(pool=7)),  # makes the mapping on the way
    (["many=[{pool: 3}]", "many.0.policy=lfu"], "many", (Cache(pool=3, policy="lfu"),)),  # later ones see earlier ones
    (["stall=2m"], "stall", 120.0),
    (["word=a=b"], "word", "a=b"),
    (["need=4"], "need", 4),
]


@pytest.mark.parametrize(("sets", "field", "value"), SETS)
def test_overrides(sets: list[str], field: str, value: object) -> None:
    assert getattr(load(HEAD, *sets), field) == value


BAD_SETS = [
    ("cache.poll=7", "--set cache.poll=7: cache.poll: unknown key, did you mean 'pool'?"),
    ("need", "--set need: should be key.path=value"),
    ("need.x=1", "--set need.x=1: need is 1, it has no 'x'"),
    ("many.0.pool=1", "--set many.0.pool=1: many is a list, it has no '0'"),
    ("stall=3", "--set stall=3: stall: a duration needs a unit"),
]


@pytest.mark.parametrize(("override", "says"), BAD_SETS)
def test_bad_overrides_name_themselves(override: str, says: str) -> None:
    assert says in complaint(HEAD + ("many: []\n" if "many" in override else ""), override)


def test_an_override_of_one_alias_leaves_the_others() -> None:
    spec = load(HEAD + "cache: &c {pool: 3}\nmaybe: *c", "maybe.pool=9")
    assert (spec.cache.pool, spec.maybe and spec.maybe.pool) == (3, 9)


FILES = [
    (lambda path: None, "no such file"),
    (lambda path: path.mkdir(), "is a directory"),
    (lambda path: path.write_bytes(b""), "the file is empty"),
    (lambda path: path.write_bytes(b"a: 1\nb: \xff"), ":2: not UTF-8 text (byte 0xff)"),
    (lambda path: path.write_bytes(b"#" * (yamlspec.MAX_BYTES + 1)), "larger than 1 MiB"),
]


@pytest.mark.parametrize(("make", "says"), FILES)
def test_files_that_cannot_be_read(make: object, says: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    make(path)  # type: ignore[operator]
    with pytest.raises(BadInput) as caught:
        yamlspec.load(Target, path, kind="target")
    assert str(caught.value).startswith(str(path))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_document_is_raw_data_of_any_kind(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("\ufeffagentx: other/9\r\nunknown: [1, 2s]\r\n", encoding="utf-8")
    assert yamlspec.document(path) == {"agentx": "other/9", "unknown": [1, "2s"]}


DURATIONS = [
    ("0.01ns", 1e-11),
    ("20us", 2e-5),
    ("285ms", 0.285),
    ("2s", 2.0),
    ("1.5m", 90.0),
    ("3h", 10800.0),
    ("1d", 86400.0),
]


@pytest.mark.parametrize(("text", "value"), DURATIONS)
def test_units(text: str, value: float) -> None:
    assert yamlspec.seconds(text) == pytest.approx(value, rel=1e-15)


@given(st.floats(min_value=0, max_value=1e9).map(lambda value: round(value, 3)) | st.floats(min_value=0, max_value=1e9))
def test_durations_survive_the_way_out_and_back(value: float) -> None:
    text = yamlspec.duration_text(value)
    assert yamlspec.seconds(text) == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert load(HEAD, f"stall={text}").model_dump(mode="json")["stall"] == text


PIECES = [
    "a",
    "b: ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "&x ",
    "*x",
    "!t ",
    "'",
    '"',
    "|",
    ">",
    "%",
    "@",
    "---",
    "\n",
    " ",
    "<<: ",
    "#",
    "1",
]


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_any_text_is_a_spec_or_one_clear_error(text: str) -> None:
    problem = "f.yaml: none"
    try:
        load(HEAD + text)
    except BadInput as error:
        problem = str(error)
    assert all(line.startswith("f.yaml") for line in problem.split("\n"))


def test_a_large_spec_is_read(tmp_path: pathlib.Path) -> None:
    rows = [f"  - {{pool: {number}}}" for number in range(3000)]
    assert len(load(HEAD + "many:\n" + "\n".join(rows)).many) == 3000
