"""Why each token between what a request got and its ideal was not there, by the server's own KV events.

Of the blocks behind those that a request was given, in the order of its prompt: one that no event had stored when it
was sent was *in flight*. One that was on no tier at some moment between its leaving the queue and the store of its own
prompt was *evicted*: the event that removed it says when. One that was on the host alone was *not loaded back*. What
the events say was on the device all the while, and was not given, stays unexplained. For whom a block was removed no
event says: it is *inferred* (block_removers.py).

Only a whole recording is believed: no message lost, no event unread, the ids of all prompts known and of the lengths
that the server counted, and every block that a request was given seen stored before it ended. Else the labels are
modelled, all of them, and it is said why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.kv_events import KV_EVENTS, read_kv_events
from agentx.reporter.block_removers import SLACK, Prompt, Removers
from agentx.reporter.learnt_template import Untaught
from agentx.reporter.losses_graves import EVICTED, HOST_DROPPED, NOT_BACKED_UP, Grave
from agentx.reporter.losses_shadow import Found, Make, Request
from agentx.reporter.sent_ids import Unknowable
from agentx.reporter.stored_blocks import Blocks, Ids, Numbers, Places, places, root_place
from agentx.reporter.throughput import cached_tokens
from agentx.results import RunResults


def recorded(run: RunResults) -> bool:
    return (run.folder / KV_EVENTS).exists()


def blocks_by_server(run: RunResults) -> list[Blocks]:
    """Of each server that the run's lanes were dealt out to. Raises Unknowable for a recording that is not whole."""
    try:
        found = blocks_of_run(run)
    except BadInput as error:
        raise Unknowable(f"the recording of KV events cannot be used: {error}") from None
    if len(found) != run.addresses:
        raise Unknowable(
            f"KV events came from {len(found)} publishers, for {run.addresses} servers: which of them had a request "
            f"is not known"
            if found
            else "no KV events came"
        )
    for one in found:
        if one.lost:
            raise Unknowable(f"{one.lost:,d} messages with KV events were lost on the way")
        if one.unread:
            raise Unknowable(f"{one.unread:,d} KV events could not be read")
        if one.page is None:
            raise Unknowable("no KV event says that anything was stored")
    return found


def blocks_of_run(run: RunResults) -> list[Blocks]:
    """By publisher. Raises BadInput."""
    from agentx.reporter.stored_blocks import blocks_of

    made = blocks_of(read_kv_events(run.folder), run.wall)
    return [made[publisher] for publisher in sorted(made)]


def prompts_of(
    run: RunResults, requests: Sequence[Request], servers: Sequence[Blocks], *, learns: bool
) -> list[Prompt]:
    """`learns`: their ids have to be learnt first. Raises Unknowable where they are not known, or do not have the
    length that the server counted."""
    made, wrong = [], 0
    if learns:
        _learn(requests)
    for attempt, make, namespace in requests:
        blocks = servers[run.server_of(attempt.lane)]
        ids = _ids(attempt, make)
        wrong += attempt.prompt_tokens not in (None, len(ids)) and len(ids) > 0
        made.append(Prompt(attempt, _where(ids, namespace.decode(), blocks), blocks))
    if wrong:
        raise Unknowable(f"{wrong:,d} of {len(made):,d} prompts do not have the length that the server counted")
    return made


def _learn(requests: Sequence[Request]) -> None:
    """What a chat template adds, where it has to be learnt: from any prompt that has something new."""
    for attempt, make, _ in requests:
        try:
            make()
        except Untaught as untaught:
            untaught.by.learn(attempt, untaught.said)


def _ids(attempt: Attempt, make: Make) -> Ids:
    """None for a request that was not answered, where what the template adds to it was never stored."""
    try:
        return np.frombuffer(make(), dtype="<u4")
    except Untaught:
        if attempt.ok:
            raise
        return np.empty(0, dtype=np.uint32)


def _where(ids: Ids, namespace: str, blocks: Blocks) -> Places:
    """The places of a prompt's blocks; with bigram keys the last token has none of its own."""
    place = root_place(namespace)
    if blocks.bigram and len(ids):
        return places(ids[:-1], blocks.page or 1, place, behind=int(ids[-1]))
    return places(ids, blocks.page or 1, place)


def measure_losses(prompts: Sequence[Prompt], ideals: Sequence[int]) -> dict[int, Found]:
    """By place among `prompts`, what the events say of each that was answered and told its cached tokens.

    `ideals`: of each prompt. Raises Unknowable where the events do not tell of the prompts.
    """
    answered = [(number, one) for number, one in enumerate(prompts) if one.attempt.ok]
    untold = sum(not _was_stored(prompt) for _, prompt in answered)
    if untold:
        raise Unknowable(
            f"no KV event says that the prompts of {untold:,d} of {len(answered):,d} answered requests were stored: "
            f"they were there before, or the server saw other ids"
        )
    servers = {id(one.blocks): one.blocks for one in prompts}
    removers = {key: Removers(blocks, prompts) for key, blocks in servers.items()}
    told = [(number, one, cached_tokens(one.attempt)) for number, one in answered]
    return {
        number: _found(one, number, cached, ideals[number], removers[id(one.blocks)])
        for number, one, cached in told
        if cached is not None
    }


def _was_stored(prompt: Prompt) -> bool:
    """By the end of its request. A place that was stored says that all before it was."""
    if not len(prompt.where):
        return True
    attempt, last = prompt.attempt, prompt.where[-1:]
    stop = prompt.blocks.number_at((attempt.end if attempt.end is not None else attempt.sent) + SLACK)
    return 0 <= int(prompt.blocks.device.first(last)[0]) < stop


def _found(prompt: Prompt, number: int, cached: int, ideal: int, removers: Removers) -> Found:
    """What the request would have found, as `losses.label` wants it: prefixes, in tokens."""
    blocks, attempt, page = prompt.blocks, prompt.attempt, prompt.blocks.page or 1
    first, stop = cached // page, min(-(-ideal // page), len(prompt.where))
    if stop <= first:
        return Found(ideal, ideal, ideal)
    where = prompt.where[first:stop]
    begin, end = _window(attempt, blocks)
    look = _Look(blocks, where, blocks.number_at(attempt.sent), begin, end)
    known = first + _leading(look.known)
    held = first + min(_leading(look.held), known - first)
    given = first + min(_leading(look.there), held - first)
    lost = tuple(_graves(look, held - first, known - first, page, removers, number))
    known, held, given = (cached if count == first else count * page for count in (known, held, given))
    return Found(known, held, given, lost)


def _leading(flags: npt.NDArray[np.bool_]) -> int:
    return len(flags) if flags.all() else int(np.argmin(flags))


def _window(attempt: Attempt, blocks: Blocks) -> tuple[int, int]:
    """The events told while a prompt may have been matched: from its leaving the queue until its store was told."""
    first = attempt.first if attempt.first is not None else attempt.end or attempt.sent
    admitted = min(attempt.sent + (attempt.queue_seconds or 0.0), max(attempt.sent, first))
    begin = attempt.sent if attempt.queue_seconds is None else admitted
    return blocks.number_at(begin), blocks.number_at(first + SLACK)


class _Look:
    """Blocks of one prompt in its window. `known`: stored before it was sent; `held`: on some tier all the while;
    `there`: on the device. `cause` and `gone`: of those not held, why, and the number of the event that says so."""

    def __init__(self, blocks: Blocks, where: Places, sent: int, begin: int, end: int) -> None:
        first = blocks.device.first(where)
        device = blocks.device.at(where, begin)
        comes = (device.next >= 0) & (device.next < end)  # something was told in the window
        leaves = device.there & comes & ~device.comes
        self.known = (first >= 0) & (first < sent)
        self.there = device.there & ~leaves
        removed = np.where(leaves, device.next, np.where(device.there, -1, device.last))
        restored = _restored(blocks, where, device.next, leaves, comes & device.comes, end)
        moment = np.where(self.there, begin, restored)
        host = blocks.host.at(where, moment)
        self.held = self.there | host.there
        ever = host.told & ~host.there & (host.last > removed)
        tiered = len(blocks.host.known) > 0
        alone = NOT_BACKED_UP if tiered else EVICTED
        self.cause = np.where(ever, HOST_DROPPED, alone)
        self.gone = np.where(ever, host.last, removed)


def _restored(
    blocks: Blocks,
    where: Places,
    next_event: Numbers,
    leaves: npt.NDArray[np.bool_],
    comes: npt.NDArray[np.bool_],
    end: int,
) -> Numbers:
    """Of blocks that were gone from the device, the number of the store that brought them back in the window: the
    request's own, as a rule. The window's end where none did."""
    again = np.where(comes, next_event, end)
    if leaves.any():
        after = blocks.device.at(where, np.where(leaves, next_event + 1, 0)).next
        again = np.where(leaves, np.where((after >= 0) & (after < end), after, end), again)
    return again


def _graves(look: _Look, begin: int, stop: int, page: int, removers: Removers, own: int) -> Iterator[Grave]:
    """Runs of blocks that went for one reason in one event. What lies behind a gone block and is there itself cannot be
    given either: it goes with that one."""
    gone, cause, tokens = -1, EVICTED, 0
    for place in range(begin, stop):
        if look.held[place]:
            tokens += page
            continue
        number, why = int(look.gone[place]), str(look.cause[place])
        if (number, why) != (gone, cause) and tokens:
            yield removers.grave(cause, tokens, gone, own)
            tokens = 0
        gone, cause, tokens = number, why, tokens + page
    if tokens:
        yield removers.grave(cause, tokens, gone, own)
