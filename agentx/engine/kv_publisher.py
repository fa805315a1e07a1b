"""What the embedded engine's cache stores and removes, published over ZeroMQ as SGLang 0.5.23 and vLLM publish it.

One message for each step that changed something: topic, number (8 bytes, big-endian, from 0), and msgpack of [seconds
since the epoch, [events], rank]. An event is a map with its `type`: `BlockStored` for a run of pages, `BlockRemoved`,
`AllBlocksCleared`; `medium` is GPU or CPU_PINNED. A block's hash is made of its tokens and of the block before it, or
of its namespace; a `cache_salt` is told. Needs the extra `kv-events`.
"""

from __future__ import annotations

import hashlib
import time
from itertools import pairwise
from typing import Any

import msgpack

from agentx.engine.nodes import ID_BYTES, CacheEvent
from agentx.engine.tokenizer import ids_to_list
from agentx.errors import BadInput

MEDIUM = {"device": "GPU", "host": "CPU_PINNED"}
_STORES = frozenset({"store", "backup", "load_back"})
_REMOVES = frozenset({"evict", "drop"})


class KvBlocks:
    """Turns the cache's own events, which are of nodes, into events of blocks of `page` tokens."""

    def __init__(self, page: int, *, bigram: bool = False) -> None:
        self._page, self._bigram = page, bigram
        self._blocks: dict[int, list[int]] = {}  # by node: the hashes of its blocks
        self._tiers: dict[int, set[str]] = {}
        self._spaces: dict[int, bytes] = {}  # by node: its namespace
        self._told: list[dict[str, Any]] = []

    def heard(self, event: CacheEvent) -> None:
        """One event of the cache, in order."""
        if event.kind == "split":
            self._split(event)
        elif event.kind in _STORES:
            self._store(event)
        elif event.kind in _REMOVES:
            self._remove(event)

    def cleared(self) -> None:
        """All of the cache is gone."""
        self._blocks.clear()
        self._tiers.clear()
        self._spaces.clear()
        self._told.append({"type": "AllBlocksCleared"})

    def take(self) -> list[dict[str, Any]]:
        """What there is to tell since the last time."""
        told, self._told = self._told, []
        return told

    def _split(self, event: CacheEvent) -> None:
        blocks = self._blocks.pop(event.node, [])
        count = len(blocks) - event.tokens // self._page
        self._blocks[event.parent], self._blocks[event.node] = blocks[:count], blocks[count:]
        self._tiers[event.parent] = set(self._tiers.get(event.node, ()))
        self._spaces[event.parent] = self._spaces.get(event.node, b"")

    def _store(self, event: CacheEvent) -> None:
        before = self._blocks.get(event.parent)
        parent = before[-1] if before else None
        if event.node not in self._blocks:
            space = event.namespace or self._spaces.get(event.parent, b"")
            self._spaces[event.node] = space
            self._blocks[event.node] = self._hashes(parent, event.key, event.tokens, space)
        salt = self._spaces[event.node].partition(b"\0")[0].decode()  # behind it: the extra key, which SGLang tells not
        self._tiers.setdefault(event.node, set()).add(event.tier)
        self._told.append(
            {
                "type": "BlockStored",
                "block_hashes": self._blocks[event.node],
                "parent_block_hash": parent,
                "token_ids": self._ids(event),
                "block_size": self._page,
                "lora_id": None,
                "medium": MEDIUM[event.tier],
                **({"cache_salt": salt} if salt else {}),
            }
        )

    def _ids(self, event: CacheEvent) -> list[Any]:
        """Of bigram keys pairs: each id with the one behind it, which the node's key has too."""
        ids = ids_to_list(event.key)
        return list(pairwise(ids)) if self._bigram else ids

    def _remove(self, event: CacheEvent) -> None:
        blocks, tiers = self._blocks.get(event.node, []), self._tiers.get(event.node, set())
        tiers.discard(event.tier)
        self._told.append({"type": "BlockRemoved", "block_hashes": blocks, "medium": MEDIUM[event.tier]})
        if not tiers:
            self._blocks.pop(event.node, None)
            self._tiers.pop(event.node, None)
            self._spaces.pop(event.node, None)

    def _hashes(self, parent: int | None, key: bytes, tokens: int, space: bytes) -> list[int]:
        size, last, made = self._page * ID_BYTES, parent, []
        more = ID_BYTES if self._bigram else 0
        for at in range(0, tokens * ID_BYTES, size):
            above = b"/" + space if last is None else b"%d" % last
            digest = hashlib.blake2b(above + b"/" + key[at : at + size + more], digest_size=8).digest()
            last = int.from_bytes(digest, "big", signed=True)
            made.append(last)
        return made


class KvPublisher:
    """Binds `address`, such as tcp://127.0.0.1:5557, and sends. Raises BadInput where it cannot."""

    def __init__(self, address: str, page: int, *, bigram: bool = False) -> None:
        try:
            import zmq
        except ImportError:
            raise BadInput(
                "--kv-events needs pyzmq, which is not installed", hint="pip install 'agentx-replay[kv-events]'"
            ) from None
        self.blocks = KvBlocks(page, bigram=bigram)
        self._context = zmq.Context()
        self._socket: Any = self._context.socket(zmq.PUB)
        self._number = 0
        try:
            self._socket.bind(address)
        except zmq.ZMQError as error:
            self.close()
            raise BadInput(f"--kv-events: {address} cannot be used: {error}") from None

    def send(self) -> None:
        """Tell what has happened since the last time, if anything has."""
        if events := self.blocks.take():
            payload = msgpack.packb([time.time(), events, 0])
            self._socket.send_multipart([b"", self._number.to_bytes(8, "big"), payload])
            self._number += 1

    def close(self) -> None:
        self._socket.close(linger=200)  # ms for what is still to be sent
        self._context.term()
