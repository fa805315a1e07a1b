"""Prefix stability: what a template does to earlier turns is found at the turns at which it does it."""

from __future__ import annotations

import json

import aiohttp
import pytest
from aiohttp import web

from agentx.replayer.doctor_prefix import common, prefix_checks


def plain(messages, tools):
    """A template that keeps everything it has rendered."""
    text = json.dumps(tools or [])
    for message in messages:
        text += f"<{message['role']}>{message.get('reasoning_content', '')}{message['content']}"
        text += json.dumps(message.get("tool_calls", ""))
    return text + "<assistant>"


def forgetful(messages, tools):
    """Reasoning before the last user message is left out, as many templates do."""
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    kept = [
        {name: value for name, value in message.items() if name != "reasoning_content"} if place < last else message
        for place, message in enumerate(messages)
    ]
    return plain(kept, tools)


def counting(messages, tools):
    """The number of messages stands in front: nothing is ever kept."""
    return f"{len(messages)} messages" + plain(messages, tools)


def thinking(messages, tools):
    """A reply opens with a tag that the history does not have."""
    return plain(messages, tools) + "<think>"


async def served(routes):
    app = web.Application()
    for path, handler in routes.items():
        app.router.add_post(path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def checks(routes):
    runner, base = await served(routes)
    try:
        async with aiohttp.ClientSession() as session:
            return {check.name: check for check in await prefix_checks(session, base, "m")}
    finally:
        await runner.cleanup()


def tokenizer(template):
    async def tokenize(request):
        body = await request.json()
        return web.json_response({"tokens": [ord(each) for each in template(body["messages"], body.get("tools"))]})

    return {"/tokenize": tokenize}


PLAIN, TOOLS = "plain messages", "tools and reasoning"
CASES = [
    # template, (tool turns, user turns) of plain messages, of tools and reasoning
    (plain, ("ok", "ok"), ("ok", "ok")),
    (thinking, ("ok", "ok"), ("ok", "ok")),  # the opening of a reply is not counted
    (forgetful, ("ok", "ok"), ("ok", "problem")),
    (counting, ("problem", "problem"), ("problem", "problem")),
]


@pytest.mark.parametrize(("template", "of_plain", "of_tools"), CASES)
async def test_templates(template, of_plain, of_tools):
    found = await checks(tokenizer(template))
    for shape, verdicts in ((PLAIN, of_plain), (TOOLS, of_tools)):
        for kind, verdict in zip(("tool", "user"), verdicts, strict=True):
            assert found[f"prefix at {kind} turns, {shape}"].verdict == verdict


async def test_what_is_said_of_a_template_that_forgets():
    check = (await checks(tokenizer(forgetful)))[f"prefix at user turns, {TOOLS}"]
    assert "where the trace keeps all: the template writes" in check.said
    assert check.said.startswith("turn 4 keeps ")
    assert "live-ids" in check.mend


async def test_a_server_that_gives_the_ids_of_a_prompt_with_its_reply():
    async def chat(request):
        body = await request.json()
        assert (body["max_tokens"], body["return_prompt_token_ids"]) == (1, True)
        ids = [ord(each) for each in plain(body["messages"], body.get("tools"))]
        return web.json_response({"choices": [{"prompt_token_ids": ids, "message": {}}]})

    found = await checks({"/v1/chat/completions": chat})
    assert {check.verdict for check in found.values()} == {"ok"}
    assert len(found) == 4


async def test_a_server_that_gives_none():
    async def chat(_):
        return web.json_response({"error": "no template"}, status=400)

    found = await checks({"/v1/chat/completions": chat})
    assert {check.verdict for check in found.values()} == {"unknown"}
    assert "answers 400" in found[f"prefix, {PLAIN}"].said


@pytest.mark.parametrize(("one", "other", "many"), [([1, 2], [1, 3], 1), ([1], [1, 2], 1), ([], [1], 0)])
def test_common(one, other, many):
    assert common(one, other) == many
