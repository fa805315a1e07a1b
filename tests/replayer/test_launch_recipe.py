"""Recipes: what is filled in, what is refused, what is kept, and how much host memory a pool needs."""

from __future__ import annotations

import json

import pytest

from agentx.errors import BadInput
from agentx.replayer.launch_recipe import (
    check_host_pool,
    flag,
    host_pool,
    recipe_of,
    stated_facts,
    variables_of,
    words_of,
)
from agentx.replayer.targets import Launch, Target, without_secret_flags

ENVIRON = {"MODELS": "/data", "HF_TOKEN": "hush", "IMAGE": "rocm/sgl@sha256:ab"}


def launch(**keys) -> Launch:
    return Launch.model_validate({"kind": "launch", "command": ["serve", "--port", "{port}"], **keys})


def recipe(simulated=(), **keys):
    return recipe_of(launch(**keys), port=21000, simulated=dict(simulated), environ=ENVIRON)


def test_variables_port_and_image_are_filled_in():
    made = recipe(
        command="docker run {environment} \\\n  {image} serve --model-path '${MODELS}/glm' --port {port}",
        arguments=["--dtype", "auto"],
        environment={"A": "${MODELS}/x", "B": "2"},
        image="${IMAGE}",
        cwd="${MODELS}",
        stop=["docker", "rm", "s-{port}"],
    )
    image = "rocm/sgl@sha256:ab"
    assert made.argv == (
        *("docker", "run", "-e", "A", "-e", "B", image),
        *("serve", "--model-path", "/data/glm", "--port", "21000", "--dtype", "auto"),
    )
    assert (made.environment, made.cwd, made.image) == ({"A": "/data/x", "B": "2"}, "/data", image)
    assert (made.model_path, made.stop, made.url) == (
        "/data/glm",
        ("docker", "rm", "s-21000"),
        "http://127.0.0.1:21000",
    )


REFUSED = [
    ({"command": []}, "nothing to start"),
    ({"command": "serve '--port {port}"}, "command: No closing quotation"),
    ({"command": ["serve"]}, r"no word has \{port\}"),
    ({"environment": {"M": "${MODEL_PATH}"}}, r"environment.M: .* MODEL_PATH is not set \(export MODEL_PATH=...\)"),
    ({"arguments": ["${GONE}"]}, "command: the environment variable GONE is not set"),
    ({"arguments": ["{image}"]}, "there is no image"),
    ({"environment": {"SGLANG_SIMULATE_ACC_LEN": "2.5"}}, "2.5 in the target, and the plan's acceptance is 2.99"),
]


@pytest.mark.parametrize(("keys", "says"), REFUSED)
def test_what_is_refused(keys, says):
    with pytest.raises(BadInput, match=says):
        recipe({"SGLANG_SIMULATE_ACC_LEN": "2.99"}, **keys)


def test_a_url_says_where_a_server_listens_whose_command_has_no_port():
    assert recipe(command=["serve"], url="http://127.0.0.1:30000/v1").url == "http://127.0.0.1:30000/v1"


SECRET = "serve --port {port} --api-key s3cret --admin-api-key=s3cret"


def test_numbers_are_words():
    made = recipe(command=["serve", "{port}", "--tp-size", 8], arguments=["--mem", 0.85], environment={"A": 900})
    assert made.argv == ("serve", "21000", "--tp-size", "8", "--mem", "0.85")
    assert made.environment == {"A": "900"}


def test_no_secret_is_kept():
    made = recipe(
        {"SGLANG_SIMULATE_ACC_TOKEN_MODE": "fixed"},
        command=["serve", "--port", "{port}", "--api-key", "s3cret", "--admin-api-key=s3cret", "-H", "T: ${HF_TOKEN}"],
        environment={"HF_TOKEN": "${HF_TOKEN}", "OTHER": "x${HF_TOKEN}", "MODEL": "${MODELS}"},
    )
    assert "s3cret" in made.argv
    assert made.environment["OTHER"] == "xhush"
    kept = json.dumps(made.kept)
    assert "hush" not in kept
    assert "s3cret" not in kept
    assert "s3cret" not in json.dumps(Target("t", launch(command=SECRET.split())).record())
    script = Target("t", launch(command=["bash", "-c", f"{SECRET} &\nwait"])).record()
    assert script["command"][2] == "serve --port {port} --api-key (not kept) --admin-api-key=(not kept) &\nwait"
    assert "s3cret" not in json.dumps(Target("t", launch(command=SECRET)).record())
    assert made.kept["environment"]["SGLANG_SIMULATE_ACC_TOKEN_MODE"] == "fixed"  # its name only looks like a secret's
    assert made.kept["environment"]["MODEL"] == "/data"


def test_flags():
    assert flag(["--tp", "4", "--tp=8"], ["--tp-size", "--tp"]) == "8"  # argparse takes the last
    assert flag(["--x"], ["--x"]) == ""
    assert flag(["--x"], ["--y"]) is None
    kept = without_secret_flags(["--api-key", "a", "--max-total-tokens", "5", "--token"])
    assert kept == ["--api-key", "(not kept)", "--max-total-tokens", "5", "--token"]


def test_variables_that_a_recipe_needs():
    found = variables_of(launch(arguments=["${B}", "${A}${B}"], environment={"X": "${C}"}, image="${A}"))
    assert found == ["B", "A", "C"]


def test_what_the_command_says_of_its_server():
    made = launch(arguments=["--context-length", "4096", "--page-size=16", "--model-path", "m", "--tp", "x"])
    assert stated_facts(made) == {"context_length": 4096, "context": 4096, "page_size": 16, "model": "m"}


POOLS = [
    # 2 GB on each of 8 ranks
    ({"arguments": ["--hicache-size", "2", "--tp", "8"]}, 16_000_000_000),
    # every data-parallel replica has its ranks, unless attention itself is data-parallel
    ({"arguments": ["--hicache-size", "2", "--tp", "4", "--dp", "2"]}, 16_000_000_000),
    ({"arguments": ["--hicache-size", "2", "--tp", "8", "--dp", "8", "--enable-dp-attention"]}, 16_000_000_000),
    # by the ratio, 2 unless it is given
    ({"arguments": ["--enable-hierarchical-cache", "--max-total-tokens", "1000"], "bytes_per_token": 10}, 20_000),
    (
        {
            "arguments": ["--enable-hierarchical-cache", "--hicache-ratio", "1.5", "--max-total-tokens", "1000"],
            "bytes_per_token": 10,
            "ranks": 2,
        },
        30_000,
    ),
    ({"host_tokens": 2_100_000, "bytes_per_token": 100_152, "ranks": 8}, 1_682_553_600_000),
    # a script's own words count too
    ({"command": ["bash", "-c", "x --port {port} --tp-size 4 --hicache-size 2 &"]}, 8_000_000_000),
    ({"arguments": ["--enable-hierarchical-cache"]}, None),  # neither the pool nor a token's bytes are known
    ({}, None),
]


@pytest.mark.parametrize(("keys", "needed"), POOLS)
def test_what_a_host_pool_needs(keys, needed):
    found = host_pool(launch(**keys), memory=10**12)
    assert (None if found is None else found.needed) == needed
    assert found is None or found.fits == (needed <= 10**12)


def test_a_host_pool_above_the_hosts_memory_is_refused():
    with pytest.raises(BadInput, match=r"needs 10,000,000.0 GB \(1,000,000,000,000 tokens x 10,000 bytes x 1 ranks\)"):
        check_host_pool(launch(host_tokens=10**12, bytes_per_token=10_000))
    check_host_pool(launch(host_tokens=10, bytes_per_token=10_000))


def test_a_string_is_split_as_a_shell_would():
    assert words_of(launch(command="a 'b c' \\\n --port {port}", arguments=["d"])) == [
        "a",
        "b c",
        "--port",
        "{port}",
        "d",
    ]
