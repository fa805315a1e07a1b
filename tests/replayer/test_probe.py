"""What servers say of themselves, and which words they confirm."""

from __future__ import annotations

import contextlib

import aiohttp
import pytest
from aiohttp import web

from agentx.content import lexicon
from agentx.errors import BadInput, Unreachable
from agentx.replayer.probe import confirmed_words, server_facts


@contextlib.asynccontextmanager
async def server(**answers):
    """A server that answers a path with a value, a status, or by a function of the body; gives (session, URL)."""

    async def handle(request: web.Request) -> web.Response:
        answer = answers.get(request.path.strip("/").replace("/", "_"))
        if callable(answer):
            answer = answer(await request.json())
        if isinstance(answer, int) or answer is None:
            return web.Response(status=answer or 404)
        return web.Response(text=answer) if isinstance(answer, str) else web.json_response(answer)

    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession() as session:
            yield session, f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


MODELS = {"data": [{"id": "m", "max_model_len": 4096}, {"id": "n", "max_model_len": 512}]}
FACTS = [
    # answers, model asked for, facts
    ({"v1_models": MODELS}, None, {"model": "m", "context": 4096}),
    ({"v1_models": MODELS}, "n", {"model": "n", "context": 512}),
    ({"v1_models": MODELS}, "unlisted", {"model": "unlisted"}),
    (
        {"v1_models": MODELS, "server_info": {"page_size": 64, "version": "0.5.23", "api_key": "secret", "x": 1}},
        None,
        {"model": "m", "context": 4096, "page_size": 64, "version": "0.5.23"},
    ),
    (
        {"get_server_info": {"model_path": "p", "context_length": 99}},
        None,
        {"model": "p", "context": 99, "model_path": "p", "context_length": 99},
    ),
    ({"v1_models": "not JSON"}, "m", {"model": "m"}),
    ({"v1_models": 500}, "m", {"model": "m"}),
    ({"v1_models": [1, 2], "server_info": []}, "m", {"model": "m"}),
]  # fmt: skip


@pytest.mark.parametrize(("answers", "model", "facts"), FACTS)
async def test_facts(answers, model, facts):
    async with server(**answers) as (session, url):
        found = await server_facts(session, url, model)
    assert {key: value for key, value in found.items() if value is not None} == facts


async def test_a_server_that_names_no_model_and_one_that_wants_a_key():
    async with server() as (session, url):
        with pytest.raises(BadInput, match=r"target\.model"):
            await server_facts(session, url, None)
    async with server(v1_models=401) as (session, url):
        with pytest.raises(BadInput, match="key_env"):
            await server_facts(session, url, "m")


async def test_a_server_that_is_not_there():
    async with aiohttp.ClientSession() as session:
        with pytest.raises(Unreachable, match="cannot be reached"):
            await server_facts(session, "http://127.0.0.1:9", "m")


def tokenizer(merges=(), split=()):
    """Words are a token each, but those in `split` are two, and those in `merges` vanish into the word before them."""

    def ids(text: str) -> list[int]:
        words = [text[at : at + 4] for at in range(0, len(text), 4)]
        found = []
        for place, word in enumerate(words):
            if word in merges and place:
                found[-1] += 1_000_000
            elif word in split:
                found += [1, 2]
            else:
                found.append(int.from_bytes(word.encode(), "big") % 999_983)
        return found

    def answer(body):
        assert body["add_special_tokens"] is False
        return {"tokens": [ids(prompt) for prompt in body["prompt"]]}

    return answer


async def test_only_words_of_one_token_that_leave_their_neighbours_alone():
    words = lexicon()
    async with server(tokenize=tokenizer(merges={words[7]}, split={words[3]})) as (session, url):
        found = await confirmed_words(session, url, "m")
    assert words[3] not in found.words
    assert words[7] not in found.words
    assert len(found.words) >= len(words) - 20
    assert found.ids[0] == int.from_bytes(words[0].encode(), "big") % 999_983


@pytest.mark.parametrize(
    "answer", [None, 500, {"tokens": "?"}, {"tokens": [[1]]}, {"tokens": [["a"]] * len(lexicon())}]
)
async def test_a_server_that_cannot_tell(answer):
    async with server(tokenize=answer) as (session, url):
        assert await confirmed_words(session, url, "m") is None


async def test_too_few_words():
    async with server(tokenize=tokenizer(split=set(lexicon()[50:]))) as (session, url):
        with pytest.raises(BadInput, match="only 50 words"):
            await confirmed_words(session, url, "m")
