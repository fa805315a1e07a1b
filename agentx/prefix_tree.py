"""The prompts of a run or a trace as a radix tree over spans: what a cache that never forgets has seen."""

from __future__ import annotations

from collections.abc import Iterable

from agentx.reuse_template import SaltedStream, Span


class Node:
    """A point in a prefix tree: what may follow, by the identity of the next token; how many tokens lead to it, and the
    number of a prompt whose path they are the beginning of.
    """

    __slots__ = ("children", "depth", "owner")

    def __init__(self, owner: int = 0, depth: int = 0) -> None:
        self.children: dict[tuple[SaltedStream, int], tuple[int, Node]] = {}
        self.owner, self.depth = owner, depth


class PrefixTree:
    """All prompts seen so far, as a radix tree over spans."""

    def __init__(self) -> None:
        self.roots: dict[str | None, Node] = {}
        self.prompts = 0  # numbered from 1
        self.left: Node | None = None  # where the present prompt left what was there before

    def begin(self) -> None:
        """What is added from here on belongs to the next prompt."""
        self.prompts += 1
        self.left = None

    def root(self, space: str | None = None) -> Node:
        """Where all prompts of a model or a namespace begin: nothing is shared between them."""
        root = self.roots.get(space)
        if root is None:
            root = self.roots[space] = Node()
        return root

    def add(self, node: Node, spans: Iterable[Span], fresh: list[tuple[Node, Span]] | None = None) -> tuple[int, Node]:
        """Add spans below `node`. Returns (tokens that were there already, as a prefix; the node at their end).

        Every edge that is made anew is appended to `fresh`.
        """
        matched, unbroken = 0, True
        for span in spans:
            start = span.start
            while start < span.stop:
                found = node.children.get((span.key, start))
                if found is None:
                    unbroken = False
                    if self.left is None:
                        self.left = node
                    child = Node(self.prompts, node.depth + span.stop - start)
                    node.children[span.key, start] = (span.stop, child)
                    if fresh is not None:
                        fresh.append((node, span._replace(start=start)))
                    node, start = child, span.stop
                    continue
                stop, child = found
                if stop > span.stop:
                    child = _split(node, span.key, start, span.stop)
                    stop = span.stop
                matched += stop - start if unbroken else 0
                node, start = child, stop
        return matched, node


def _split(node: Node, key: SaltedStream, start: int, at: int) -> Node:
    stop, child = node.children[key, start]
    middle = Node(child.owner, node.depth + at - start)
    middle.children[key, at] = (stop, child)
    node.children[key, start] = (at, middle)
    return middle
