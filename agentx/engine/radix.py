"""The device tier: a radix tree over token ids, with pages, namespaces, locks and leaf eviction.

Rules of SGLang 0.5.23, each marked where it is applied (docs/fidelity.md tells them in full):
K1 namespaces never share; K2 a match stops one token short of the prompt and at a page; K3 bigram keys;
I1, I2 prompts are inserted chunk by chunk, replies at the end; I4 duplicate pages are freed; I5 a finished
request's leaf is split at its prompt; I6 nothing is inserted for an aborted request; E1 only an allocation evicts,
E2 whole leaves leave first, a parent follows its last child; E3 recency is a logical clock; E4 hit counts.

Token ids are bytes, four per token. Lengths are counted in tokens ("units"); a node's key holds its own tokens, plus
one more with bigram keys. Nothing here looks at a single token: runs are compared as bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from agentx.engine.nodes import ID_BYTES, POLICIES, CacheEvent, Kind, Lease, Match, Node, Tier

ANCESTOR_STEP = 0.00001  # E3: how much older than its child a node is after a match


class RadixCache:
    """The tree and the books of a pool of `capacity` tokens: free + evictable + protected + what leases own."""

    def __init__(
        self,
        capacity: int,
        page: int = 1,
        policy: str = "lru",
        *,
        bigram: bool = False,
        subscriber: Callable[[CacheEvent], None] | None = None,
    ) -> None:
        self.capacity, self.page = capacity, page
        self.subscriber = subscriber
        self.evicted = self.dropped_unbacked = self.dropped_host_pressure = self.backed_up = self.loaded_back = 0
        self.host_capacity = self.host_free = 0
        self._priority = POLICIES[policy]
        self._shift = 1 if bigram else 0
        self._extra = ID_BYTES * self._shift
        self._first = page * ID_BYTES + self._extra  # bytes that name a child
        self._clock = 0.0
        self._numbers = 0
        self.clear()

    def clear(self) -> None:
        """Forget everything. No lease may be open."""
        self.root = Node(0, None, b"", b"", 0, 0.0)
        self.root.device = True
        self.free = self.capacity
        self.evictable = self.protected = 0
        self._leaves: list[tuple[tuple[float, ...], int, Node]] = []

    # -- reading

    def match(self, ids: bytes, limit: int, namespace: bytes = b"") -> Match:
        """The cached prefix of the first `limit` tokens; refreshes its path and may split a node at its end (K2)."""
        end = self._aligned(limit)
        node = deepest = self.root
        at = device = host = 0
        name = namespace
        if end <= 0:
            return Match(node, node, 0, 0)
        while at < end:
            start = at * ID_BYTES
            child = node.children.get(name + ids[start : start + self._first])
            if child is None:
                break
            name = b""
            units = child.units
            whole = units <= end - at and ids.startswith(child.key, start)
            if not whole:
                units = self._shared(child.key, ids, at, end)
                child = self._split(child, units, at, "read")
            at += units
            node = child
            if child.device:
                deepest, device = child, at
            else:
                host += units
            if not whole:
                break
        stamp = self._tick()
        step: Node | None = node
        while step is not None:  # E3: the deepest is the newest
            step.stamp = stamp
            stamp -= ANCESTOR_STEP
            step = step.parent
        return Match(deepest, node, device, host)

    # -- a request's life

    def open(self, ids: bytes, namespace: bytes, match: Match) -> tuple[Lease, int]:
        """A lease on the matched prefix, and how many of its tokens were loaded back from the host."""
        lease = Lease(ids, namespace, match.device_node)
        loaded = self._load_back(match, lease)
        lease.protected = lease.allocated = match.device + loaded
        self.lock(lease.node)
        return lease, loaded

    def make_room(self, tokens: int) -> bool:
        """Evict leaves until `tokens` are free (E1, E2). False when nothing evictable is left."""
        heap = self._leaves
        while self.free < tokens and heap:
            key, _, node = heapq.heappop(heap)
            node.queued = False
            if node.locks or node.device_children or not node.device:
                continue
            now = self._priority(node)
            if now != key:  # it was used since it was put here
                self._offer(node)
                continue
            self._evict(node)
        return self.free >= tokens

    def extend(self, lease: Lease, end: int) -> None:
        """Take pages so that the lease has room for tokens [0, end). Call `make_room` before. Raises RuntimeError."""
        tokens = end - lease.allocated
        if self.page > 1:
            tokens = self.ceil(end) - self.ceil(lease.allocated)
        if tokens > self.free:
            raise RuntimeError(f"out of KV pages: {tokens} tokens wanted, {self.free} free")
        self.free -= tokens
        lease.allocated = end

    def checkpoint(self, lease: Lease, up_to: int) -> None:
        """Insert tokens [0, up_to) of the lease, floored to a page; the lease then holds the tree's pages (I1, I2)."""
        units = self._aligned(up_to)
        if units <= 0:
            self.root.stamp = self._tick()
            return
        node, doubles = self._insert(lease.ids, units, lease.namespace, lease.protected, lease.inserted)
        self.free += doubles
        lease.inserted = max(lease.inserted, units)
        prompt = self._aligned(lease.prompt)
        if 0 < prompt < units:  # I5
            self._insert(lease.ids, prompt, lease.namespace, prompt, prompt)
        self._relock(lease.node, node)
        lease.node, lease.protected = node, units

    def release(self, lease: Lease) -> None:
        """Give back the lease's own pages and its lock; what was inserted stays (I6)."""
        self.free += self.ceil(lease.allocated) - lease.protected
        self.unlock(lease.node)
        lease.allocated = lease.protected

    def ceil(self, tokens: int) -> int:
        return -(-tokens // self.page) * self.page

    # -- the tree

    def _aligned(self, tokens: int) -> int:
        """Units that `tokens` ids make, floored to a page (K2, K3)."""
        return (tokens - self._shift) // self.page * self.page

    def _tick(self) -> float:
        self._clock += 1.0
        return self._clock

    def _shared(self, key: bytes, ids: bytes, at: int, end: int) -> int:
        """Units, floored to a page, that `key` shares with the ids of units [at, end)."""
        start = at * ID_BYTES
        length = min(len(key), (end - at) * ID_BYTES + self._extra)
        low, step = 0, 1024
        while low < length:
            high = min(length, low + step)
            if key[low:high] == ids[start + low : start + high]:
                low, step = high, step * 2
                continue
            while high - low > ID_BYTES:  # they differ somewhere in [low, high)
                middle = (low + high) // (2 * ID_BYTES) * ID_BYTES
                if key[low:middle] == ids[start + low : start + middle]:
                    low = middle
                else:
                    high = middle
            break
        return (low // ID_BYTES - self._shift) // self.page * self.page

    def _new(self, parent: Node, name: bytes, key: bytes, units: int) -> Node:
        self._numbers += 1
        node = parent.children[name] = Node(self._numbers, parent, name, key, units, self._tick())
        node.born = self._tick()
        return node

    def _split(self, child: Node, units: int, at: int, cause: str) -> Node:
        """Cut `child`, which begins at unit `at`, after `units`; returns the new node above it."""
        parent = child.parent
        assert parent is not None
        head = self._new(parent, child.name, child.key[: units * ID_BYTES + self._extra], units)
        head.hits, head.born, head.locks, head.loading = child.hits, child.born, child.locks, child.loading
        head.device, head.host = child.device, child.host
        head.device_children = 1 if child.device else 0
        child.parent, child.key, child.units = head, child.key[units * ID_BYTES :], child.units - units
        child.name = child.key[: self._first]
        head.children[child.name] = child
        child.stamp = self._tick()
        self._after_split(head)
        self._emit("split", "device" if child.device else "host", cause, child, at + units)
        return head

    def _insert(self, ids: bytes, units: int, namespace: bytes, own: int, inserted: int) -> tuple[Node, int]:
        """Put units [0, units) into the tree, those from `own` on with the caller's pages. Returns the last node and
        how many of those pages were there already (I4). Nodes that end by `inserted` were counted before (E4)."""
        node = self.root
        node.stamp = self._tick()
        at = doubles = 0
        name = namespace
        while at < units:
            start = at * ID_BYTES
            child = node.children.get(name + ids[start : start + self._first])
            if child is None:
                break
            name = b""
            self._clock += 1.0
            child.stamp = self._clock
            length = child.units
            if length > units - at or not ids.startswith(child.key, start):
                length = self._shared(child.key, ids, at, units)
                child = self._split(child, length, at, "write")
            if not child.device:
                self._restore(child, at)
            elif at + length > own:
                doubles += length - max(0, own - at)
            node = child
            at += length
            if at > inserted:
                self._count_hit(node)
        if at < units:
            start = at * ID_BYTES
            name += ids[start : start + self._first]
            leaf = self._new(node, name, ids[start : units * ID_BYTES + self._extra], units - at)
            leaf.device = True
            node.device_children += 1
            self.evictable += leaf.units
            self._offer(leaf)
            self._emit("store", "device", "insert", leaf, at)
            node = leaf
            if units > inserted:
                self._count_hit(node)
        return node, doubles

    def _restore(self, node: Node, at: int) -> None:
        """Give a host-only node the inserting request's pages."""
        node.device = True
        if node.locks:
            self.protected += node.units
        else:
            self.evictable += node.units
        if node.parent is not None:
            node.parent.device_children += 1
        self._offer(node)
        self._emit("store", "device", "restore", node, at)

    def _remove(self, node: Node) -> None:
        """Take a childless node out of the tree; its pages are accounted for by the caller."""
        assert node.parent is not None
        del node.parent.children[node.name]
        node.key = b""  # a stale heap entry must not keep the ids alive

    # -- locks (a locked path can not be evicted)

    def lock(self, node: Node) -> None:
        step = node
        while step.parent is not None:
            if not step.locks and step.device:
                self.evictable -= step.units
                self.protected += step.units
            step.locks += 1
            step = step.parent

    def unlock(self, node: Node) -> None:
        step = node
        while step.parent is not None:
            step.locks -= 1
            if not step.locks:
                if step.device:
                    self.evictable += step.units
                    self.protected -= step.units
                self._offer(step)
            step = step.parent

    def _relock(self, old: Node, new: Node) -> None:
        """Move a lock from `old` down to `new`, a node below it: the path above `old` keeps its count."""
        step = new
        while step is not old:
            if not step.locks and step.device:
                self.evictable -= step.units
                self.protected += step.units
            step.locks += 1
            parent = step.parent
            assert parent is not None
            step = parent

    # -- eviction

    def _offer(self, node: Node) -> None:
        """Enter a leaf that may be evicted into the heap, once."""
        if node.device and not node.locks and not node.device_children and not node.queued:
            node.queued = True
            heapq.heappush(self._leaves, (self._priority(node), node.number, node))

    def _leave_device(self, node: Node) -> None:
        """Free the device pages of an unlocked leaf."""
        node.device = False
        self.evictable -= node.units
        self.free += node.units
        self.evicted += node.units
        parent = node.parent
        assert parent is not None
        parent.device_children -= 1
        if parent.parent is not None:
            self._offer(parent)

    def _evict(self, node: Node) -> None:
        self._emit("evict", "device", "capacity", node)
        self._leave_device(node)
        self._remove(node)

    # -- what a host tier adds (agentx.engine.host)

    def _count_hit(self, node: Node) -> None:
        node.hits += 1

    def _after_split(self, head: Node) -> None:
        pass

    def _load_back(self, match: Match, lease: Lease) -> int:
        return 0

    def settle(self) -> None:
        """Finish the transfers that were started; the scheduler calls it after every batch."""

    # -- books

    def _emit(self, kind: Kind, tier: Tier, cause: str, node: Node, start: int | None = None) -> None:
        if self.subscriber is None:
            return
        parent = node.parent
        if start is None:
            start, step = 0, parent
            while step is not None:
                start, step = start + step.units, step.parent
        number = 0 if parent is None else parent.number
        name = node.name[: -self._first] if parent is self.root else b""
        self.subscriber(CacheEvent(kind, tier, cause, node.number, number, start, node.units, node.key, name))

    def check_integrity(self, owned: int) -> None:
        """Recount the tree. `owned` is what open leases own. Raises RuntimeError when the books do not balance."""
        evictable = protected = 0
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            if node.device:
                evictable, protected = (
                    (evictable, protected + node.units) if node.locks else (evictable + node.units, protected)
                )
            if node.device_children != sum(child.device for child in node.children.values()):
                raise RuntimeError(f"node {node.number} has lost count of its children")
            if node.device and not node.locks and not node.device_children and not node.queued:
                raise RuntimeError(f"leaf {node.number} could never be evicted")
        found = (evictable, protected, self.free + evictable + protected + owned)
        if found != (self.evictable, self.protected, self.capacity):
            raise RuntimeError(f"cache books do not balance: counted {found}, kept {self.evictable, self.protected}")
