"""The host tier below the device tier (HiCache): copies, demotion, host eviction, load-back.

Rules of SGLang 0.5.23: H1 its size is in tokens; H2 write_through copies a node when it is inserted,
write_through_selective at the second insertion that passes it, ancestors first, write_back only when it is evicted;
H3 evicting a node that has a copy demotes it, one without is lost (write_back copies it first, or drops what is below
it when the host is full); H4 a copy that needs room evicts host-only leaves, and under write_back, before that, copies
of what is still on the device; H5 a match goes on through host-only nodes, which are loaded back when a request is
admitted, all of them or none, and only from a threshold on; H6 a node that is being copied or loaded is locked until
`settle`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from agentx.engine.nodes import CacheEvent, Lease, Match, Node
from agentx.engine.radix import RadixCache

SELECTIVE_HITS = 2  # H2


class HostedCache(RadixCache):
    """A `RadixCache` with `host_capacity` tokens of host memory below it."""

    def __init__(
        self,
        capacity: int,
        page: int = 1,
        policy: str = "lru",
        *,
        host_capacity: int,
        write: str = "write_through",
        load_back_threshold: int = 10,
        bigram: bool = False,
        subscriber: Callable[[CacheEvent], None] | None = None,
    ) -> None:
        self._host_tokens = host_capacity
        self._threshold = load_back_threshold
        self._write_back = write == "write_back"
        self._hits_to_copy = SELECTIVE_HITS if write == "write_through_selective" else 1
        super().__init__(capacity, page, policy, bigram=bigram, subscriber=subscriber)

    def clear(self) -> None:
        super().clear()
        self.host_capacity = self.host_free = self._host_tokens
        self._host_leaves: list[tuple[tuple[float, ...], int, Node]] = []
        self._copying: list[Node] = []
        self._loads: list[Node] = []
        self._doubles: dict[int, Node] = {}  # under write_back: on both tiers and at rest, perhaps out of date

    # -- device to host

    def _count_hit(self, node: Node) -> None:
        if self._write_back:
            return
        node.hits += 1
        if not node.host and node.hits >= self._hits_to_copy:
            self._back_up(node)

    def _back_up(self, node: Node) -> None:
        """Copy a node after those ancestors that have no copy; stops at the first that finds no room (H2)."""
        chain = [node]
        step = node.parent
        while step is not None and step.parent is not None and not step.host:
            chain.append(step)
            step = step.parent
        for each in reversed(chain):
            if not self._copy(each, "insert"):
                return
            self.lock(each)
            self._copying.append(each)

    def _copy(self, node: Node, cause: str) -> bool:
        """Give a node a host copy. False when the host has no room for it."""
        short = node.units - self.host_free
        if short > 0 and self._evict_host(short) < short:
            return False
        self.host_free -= node.units
        node.host = True
        self.backed_up += node.units
        self._emit("backup", "host", cause, node)
        return True

    def _evict(self, node: Node) -> None:
        """H3: what happens to a device leaf that has to go."""
        if not node.host and self._write_back and self._copy(node, "evict"):
            self._track(node)
        if node.host:
            self._emit("evict", "device", "demote", node)
            self._leave_device(node)
            self._offer(node)
        elif self._write_back:
            self._drop_branch(node)
        else:
            self.dropped_unbacked += node.units
            self._emit("drop", "device", "unbacked", node)
            self._leave_device(node)
            self._remove(node)

    def _drop_branch(self, node: Node) -> None:
        """Lose a leaf that the full host can not take, and the host-only nodes below it."""
        below: list[Node] = []
        stack = list(node.children.values())
        while stack:
            below.append(stack.pop())
            stack.extend(below[-1].children.values())
        for each in reversed(below):
            self._leave_host(each, "host_pressure")
            self._remove(each)
        self.dropped_host_pressure += node.units
        self._emit("drop", "device", "host_pressure", node)
        self._leave_device(node)
        self._remove(node)

    # -- room on the host

    def _evict_host(self, tokens: int) -> int:
        """Free up to `tokens` or a little more of the host; returns how many (H4)."""
        freed = self._reclaim_doubles(tokens) if self._write_back else 0
        heap = self._host_leaves
        while freed < tokens and heap:
            key, _, node = heapq.heappop(heap)
            node.host_queued = False
            if not self._is_host_leaf(node):
                continue
            if self._priority(node) != key:
                self._offer(node)
                continue
            freed += node.units
            self._leave_host(node, "capacity")
            parent = node.parent
            self._remove(node)
            if parent is not None and parent.parent is not None:
                self._offer(parent)
        return freed

    def _reclaim_doubles(self, tokens: int) -> int:
        """Give up host copies of what the device still has, oldest double first; those of device leaves, whose
        demotion would need the copy soon, only when nothing else is left."""
        freed = 0
        swept: list[int] = []
        for spare_leaves in (True, False):
            for number, node in self._doubles.items():
                if freed >= tokens:
                    break
                if not (node.device and node.host):
                    swept.append(number)
                elif not node.loading and not (spare_leaves and not node.locks and not node.device_children):
                    freed += node.units
                    self._leave_host(node, "double")
                    swept.append(number)
        for number in swept:
            self._doubles.pop(number, None)
        return freed

    def _leave_host(self, node: Node, cause: str) -> None:
        node.host = False
        self.host_free += node.units
        self._emit("evict" if node.device or cause == "capacity" else "drop", "host", cause, node)

    # -- host to device

    def _load_back(self, match: Match, lease: Lease) -> int:
        """Put the host part of a match on the device, if it is worth it and there is room (H5)."""
        if match.host < self._threshold:
            return 0
        self.lock(match.node)
        room = self.make_room(match.host)
        self.unlock(match.node)
        if not room:
            return 0
        node = match.node
        while not node.device:
            node.device = True
            node.loading = match.node.number if self._write_back else 0
            self.free -= node.units
            self.evictable += node.units
            self._emit("load_back", "device", "read", node)
            parent = node.parent
            assert parent is not None
            parent.device_children += 1
            node = parent
        self.lock(match.node)
        self._loads.append(match.node)
        self.loaded_back += match.host
        lease.node = match.node
        return match.host

    def settle(self) -> None:
        for node in self._copying:
            self.unlock(node)
        for node in self._loads:
            self.unlock(node)
            step: Node | None = node if self._write_back else None
            while step is not None:
                if step.loading == node.number:
                    step.loading = 0
                    self._track(step)
                step = step.parent
        self._copying, self._loads = [], []

    # -- the tree's hooks

    def _track(self, node: Node) -> None:
        """Note whether a node is a double at rest; one that was noted before keeps its turn."""
        if not self._write_back:
            return
        if node.device and node.host and not node.loading:
            self._doubles.setdefault(node.number, node)
        else:
            self._doubles.pop(node.number, None)

    def _after_split(self, head: Node) -> None:
        self._track(head)

    def _restore(self, node: Node, at: int) -> None:
        super()._restore(node, at)
        self._track(node)

    def _remove(self, node: Node) -> None:
        super()._remove(node)
        self._doubles.pop(node.number, None)

    def _is_host_leaf(self, node: Node) -> bool:
        return node.host and not node.device and not node.locks and not node.children

    def _offer(self, node: Node) -> None:
        super()._offer(node)
        if not node.host_queued and self._is_host_leaf(node):
            node.host_queued = True
            heapq.heappush(self._host_leaves, (self._priority(node), node.number, node))

    def check_integrity(self, owned: int) -> None:
        super().check_integrity(owned)
        used = 0
        stack = list(self.root.children.values())
        while stack:
            node = stack.pop()
            stack.extend(node.children.values())
            used += node.units if node.host else 0
            if not (node.host or node.device):
                raise RuntimeError(f"node {node.number} is on no tier")
            if self._is_host_leaf(node) and not node.host_queued:
                raise RuntimeError(f"host leaf {node.number} could never be evicted")
        if used + self.host_free != self.host_capacity:
            raise RuntimeError(f"host books do not balance: {used} used, {self.host_free} free")
