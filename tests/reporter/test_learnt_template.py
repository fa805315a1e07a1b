"""A chat template's token ids out of what was stored, by hand. On an engine: test_losses_measured.py."""

from __future__ import annotations

import numpy as np
import pytest
from making import linear

from agentx.content import WordList
from agentx.kv_events import KvBatch, Stored
from agentx.reporter.learnt_template import ChatIds, StoredIds, Untaught, aligned
from agentx.reuse import unsalted
from agentx.reuse_template import PLAIN


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.uint32)


SAID = [("system", ids(1, 2, 3)), ("user", ids(4, 5)), ("assistant", ids(6, 7)), ("user", ids(8, 9))]
WHOLE = ids(90, 1, 2, 3, 91, 92, 4, 5, 91, 93, 6, 7, 91, 92, 8, 9, 91, 93)
LEARNT = {
    ("", "system", None): (90,),
    ("system", "user", None): (91, 92),
    ("user", "assistant", None): (91, 93),
    ("assistant", "user", None): (91, 92),
    ("user", "", None): (91, 93),
}


def test_what_stands_between_the_words_is_the_templates() -> None:
    assert aligned(SAID, WHOLE, 18) == LEARNT
    assert aligned(SAID, np.append(WHOLE, ids(6, 7)), 18) == LEARNT  # a reply behind it
    but_the_end = {place: between for place, between in LEARNT.items() if place != ("user", "", None)}
    assert aligned(SAID, WHOLE[:17], 18) == but_the_end  # in a page that was not full


@pytest.mark.parametrize(
    ("stored", "length"),
    [
        (WHOLE[:9], 18),  # most of it was not stored
        (WHOLE[:15], 18),  # nor the last word
        (np.where(np.arange(18) == 2, 7, WHOLE), 18),  # other words
        (WHOLE, None),  # the server did not say where the prompt ends
        (WHOLE, 15),  # it ends before its words
    ],
)
def test_only_a_whole_prompt_teaches(stored: np.ndarray, length: int | None) -> None:
    assert aligned(SAID, stored, length) is None


def test_a_template_that_changes_the_first_word() -> None:
    """It takes the space away, which makes one token of another number, or two."""
    said = [("user", ids(4, 5, 6)), ("assistant", ids(7, 8))]
    found = aligned(said, ids(92, 44, 45, 5, 6, 91, 93, 77, 8, 91), 10)
    assert found == {
        ("", "user", 4): (92, 44, 45),
        ("user", "assistant", 7): (91, 93, 77),
        ("assistant", "", None): (91,),
    }


def test_what_was_stored_is_followed_to_the_beginning() -> None:
    stored = StoredIds(
        [
            KvBatch(1.0, 0, 0, None, 0, (Stored((11, 12), None, (1, 2, 3, 4), 2, "device"),), 0),
            KvBatch(
                5.0, 0, 1, None, 0, (Stored((13,), 11, (5, 6), 2, "device"), Stored((9,), 8, (0,), 1, "device")), 0
            ),
        ]
    )
    assert [whole.tolist() for whole in stored.around(0.0, 9.0)] == [[1, 2, 5, 6], [1, 2, 3, 4]]
    assert [whole.tolist() for whole in stored.around(4.0, 9.0)] == [[1, 2, 5, 6]]


def test_prompts_are_made_once_it_is_learnt(attempt) -> None:
    session = linear(3)
    words = WordList((" one", " two", " six"), (1, 2, 3))
    nothing = ChatIds(words, PLAIN, StoredIds([]))
    with pytest.raises(Untaught) as caught:
        nothing.prompt(session, 2, unsalted)
    assert not nothing.learn(attempt("s", 2), caught.value.said)
    plain = [part.tolist() for _, part in caught.value.said]
    whole = [90] + [id for part in plain for id in [*part, 91]]
    event = Stored(tuple(range(len(whole))), None, tuple(whole), 1, "device")
    taught = ChatIds(words, PLAIN, StoredIds([KvBatch(1.0, 0, 0, None, 0, (event,), 0)]))
    assert taught.learn(attempt("s", 2, prompt=len(whole)), caught.value.said)
    assert np.frombuffer(taught.prompt(session, 2, unsalted), dtype="<u4").tolist() == whole
    first = np.frombuffer(taught.prompt(session, 1, unsalted), dtype="<u4").tolist()  # of the same roles
    assert first == [90] + [id for part in plain[:-2] for id in [*part, 91]]
