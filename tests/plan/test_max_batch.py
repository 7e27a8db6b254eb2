"""The search for the largest batch that fits: which size is tried next, and that it ends at the edge."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpubench.plan.max_batch import MemoryEdge, choose_next_batch_size, compute_size_step, find_memory_edge


@pytest.mark.parametrize(
    ("ran", "full", "found"),
    [
        ([16, 64, 32], [128, 256], MemoryEdge(ran=64, full=128)),
        ([16], [], MemoryEdge(ran=16)),
        ([], [16], MemoryEdge(full=16)),
        ([16, 256], [64], MemoryEdge(ran=256)),  # one that ran out below a size that ran tells nothing
        ([], [], MemoryEdge()),
    ],
)
def test_the_edge_lies_above_the_largest_that_ran(ran, full, found):
    assert find_memory_edge(ran, full) == found


@pytest.mark.parametrize(
    ("size", "each", "fine"),
    [(0, 1, 1), (16, 1, 1), (128, 1, 2), (512, 1, 8), (512, 4, 8), (96, 6, 6), (2970, 1, 32)],
)
def test_how_finely_sizes_are_told_apart(size, each, fine):
    assert compute_size_step(size, each) == fine


@pytest.mark.parametrize(
    ("known", "guesses", "size"),
    [
        (MemoryEdge(ran=512), [2970, 2960, 2990], 2968),  # the line's best guess first, in steps of 8
        (MemoryEdge(ran=512, full=2968), [2970, 2960, 2990], 2960),  # then the ends of its interval
        (MemoryEdge(ran=512, full=2960), [2970, 2964, 2990], 2936),  # then as much again below the line
        (MemoryEdge(ran=512, full=2500), [2970, 2964, 2990], 1560),
        (MemoryEdge(ran=512, full=2960), [], 1736),  # without a line half way
        (MemoryEdge(ran=2944), [2940, 2930, 2950], 2976),  # all guesses ran: as much again above the line
        (MemoryEdge(ran=2944), [2844, 2830, 2860], 3168),
        (MemoryEdge(ran=2944), [2970, 2940, 3010], 3008),
        (MemoryEdge(ran=2944, full=2976), [2970], None),
        (MemoryEdge(ran=512), [], 1024),  # and without a line twice as many
        (MemoryEdge(full=512), [], 256),
        (MemoryEdge(), [100], None),
        (MemoryEdge(ran=8000), [9000], 8960),
        (MemoryEdge(ran=8960), [20_000], 9984),
        (MemoryEdge(ran=9984), [20_000], 10_000),
        (MemoryEdge(ran=10_000), [20_000], None),
    ],
)
def test_the_next_size(known, guesses, size):
    assert choose_next_batch_size(known, guesses, 1, 10_000) == size


def search(
    truth: int, begin: int, guesses: list[float], each: int, most: int
) -> tuple[MemoryEdge, list[int]]:
    """The search on a machine on which batches up to `truth` fit."""
    ran, full = ([begin], []) if begin <= truth else ([], [begin])
    tried = []
    while (size := choose_next_batch_size(find_memory_edge(ran, full), guesses, each, most)) is not None:
        tried.append(size)
        (ran if size <= truth else full).append(size)
        assert len(tried) < 60
    return find_memory_edge(ran, full), tried


@given(
    st.integers(1, 8),
    st.integers(1, 5000),
    st.integers(1, 64),
    st.lists(st.floats(1, 1e5), max_size=3),
)
@example(1, 2955, 512, [2970.0, 2940.0, 2990.0])
def test_it_ends_at_the_edge_whatever_was_guessed(each, truth, begin, guesses):
    most = 4096
    found, tried = search(truth, begin * each, guesses, each, most)
    if guesses == [2970.0, 2940.0, 2990.0]:
        assert tried == [2968, 2936], "a good guess needs few tries"
    assert all(size % each == 0 and 0 < size <= most for size in tried)
    assert len(set(tried)) == len(tried)
    assert found.ran <= truth
    if found.full is not None:
        assert found.full > truth
        assert found.full - found.ran <= compute_size_step(found.ran, each)
    else:
        assert found.ran + each > most
