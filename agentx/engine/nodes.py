"""The values of the prefix cache: nodes, matches, leases, eviction priorities and the events that tell what it did.

Lengths are counted in tokens; token ids are bytes, four per token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

ID_BYTES = 4

Kind = Literal["store", "split", "evict", "backup", "load_back", "drop"]
Tier = Literal["device", "host"]


@dataclass(frozen=True, slots=True)
class CacheEvent:
    """What happened to one node. `key` is the node's own ids, `start` the tokens above it; `parent` is its parent node
    (for a split: the new node that took the head of `node`). `namespace`: of a child of the root. Causes: insert,
    restore, read, write, capacity, demote, double, unbacked, host_pressure."""

    kind: Kind
    tier: Tier
    cause: str
    node: int
    parent: int
    start: int
    tokens: int
    key: bytes
    namespace: bytes = b""


class Node:
    """A run of tokens below its parent, which holds it under `name`: the first page of its ids, after the namespace
    for a child of the root (K1). `device` and `host` say on which tiers its pages are."""

    __slots__ = (
        "born", "children", "device", "device_children", "hits", "host", "host_queued", "key", "loading", "locks",
        "name", "number", "parent", "queued", "stamp", "units",
    )  # fmt: skip

    def __init__(self, number: int, parent: Node | None, name: bytes, key: bytes, units: int, stamp: float) -> None:
        self.number, self.parent, self.name, self.key, self.units = number, parent, name, key, units
        self.children: dict[bytes, Node] = {}
        self.device = self.host = False
        self.device_children = self.locks = self.hits = 0
        self.stamp = self.born = stamp
        self.queued = self.host_queued = False  # has an entry in the heap of device, of host leaves
        self.loading = 0  # number of the load-back that reads its host pages, 0 for none


class Match(NamedTuple):
    """The longest cached prefix: `device` tokens down to `device_node`, then `host` tokens down to `node` (K2, H5)."""

    device_node: Node
    node: Node
    device: int
    host: int


class Lease:
    """One request's hold on the cache: tokens [0, protected) are the tree's, locked by `node`; [protected, allocated)
    are its own pages."""

    __slots__ = ("allocated", "ids", "inserted", "namespace", "node", "prompt", "protected")

    def __init__(self, ids: bytes, namespace: bytes, node: Node) -> None:
        self.ids, self.namespace, self.node = ids, namespace, node
        self.prompt = len(ids) // ID_BYTES
        self.protected = self.allocated = self.inserted = 0


Priority = Callable[[Node], tuple[float, ...]]
POLICIES: dict[str, Priority] = {
    "lru": lambda node: (node.stamp,),
    "lfu": lambda node: (node.hits, node.stamp),
    "slru": lambda node: (node.hits >= 2, node.stamp),
    "fifo": lambda node: (node.born,),
}
"""E3: the smallest leaves first. Every priority only grows while a node lives; `RadixCache.make_room` relies on it."""
