"""Rows of one kind of machine that were measured on unlike nodes: by rounds on the same node, or open."""

import math

import pytest
from gpubench.analysis.certainty.interval import ratio
from gpubench.analysis.decided import decided
from gpubench.analysis.over_processes import of_some_rounds, time_ratio
from gpubench.analysis.repeats import merge_repeats
from whole_rows import row_with

from gpubench.schema import hosts

NEAR = (1.0, 1.01, 0.99)


def processes(row, nodes, times, **values):
    """A process of a row in each round, on such a node."""
    return [
        row_with(
            config_id=f"c{row}", trial_id=f"t{row}", status="ok", round=number, host=node,
            epoch_time_s=time, images_per_epoch=100, device="cuda", **{"gpu_name": "G", **values},
        )
        for number, (node, time) in enumerate(zip(nodes, times, strict=True), start=1)
    ]  # fmt: skip


def merged(*rows):
    return merge_repeats([one for number, own in enumerate(rows) for one in processes(number, *own)])


def wide(row, nodes, time, **values):
    """The same with a noise that is the same in rows of as many rounds."""
    return processes(
        row, nodes, [time * (1 + 0.01 * (n % 3)) for n in range(1, len(nodes) + 1)], **values
    )  # fmt: skip


def test_rows_on_the_same_nodes_round_by_round_are_compared_round_by_round():
    """Whatever these differ by cancels."""
    one, other = merged(("aba", (1.0, 2.0, 1.01)), ("aba", (1.1, 2.2, 1.111)))
    found = time_ratio(other, one)
    assert found.value == pytest.approx(1.1)
    assert found.high - found.low < 1e-9


def test_three_rounds_in_common_on_one_node_are_enough_and_the_others_are_left_out():
    one, other = merged(("aaaaaaaa", (*NEAR, *[1.0] * 5)), ("aaabbbbb", (*NEAR, *[2.0] * 5)))
    assert time_ratio(other, one).processes == (3, 3)
    assert time_ratio(other, one).value == pytest.approx(1.0)
    assert of_some_rounds(other, one)


def test_rows_that_were_as_often_on_each_node_are_compared_by_all_their_processes():
    times = (1.0, 2.0, 1.01, 2.02)
    one, other = merged(("abab", times), ("baba", times[::-1]))
    assert time_ratio(other, one).is_known
    assert time_ratio(other, one).processes == (4, 4)


@pytest.mark.parametrize(
    "rows", [(("aaa", NEAR), ("bbb", (2.0, 2.01, 1.99))), (("ab", (1.0, 2.0)), ("bb", (2.0, 2.01)))]
)
def test_others_are_open(rows):
    one, other = merged(*rows)
    found = time_ratio(other, one)
    assert not found.is_known
    assert (found.low, found.high) == (0.0, math.inf)
    assert [one.word for one in decided([found]).ratios] == ["open"]
    assert [one.word for one in decided([found], looks=[1]).ratios] == ["open"]


def test_a_trial_over_several_nodes_is_compared_by_rounds_with_one_on_its_first_node():
    """What a sweep in one batch job measures on one node and on two is on the same node as far as it can be."""
    hosts = ["n1", "n1", "n3"]
    one, two = merge_repeats([*wide(1, hosts, 2.0), *wide(2, [f"{host} + n2" for host in hosts], 1.1)])
    found = time_ratio(one, two)
    assert found.value == pytest.approx(2 / 1.1)
    assert len(found.log.parts) == 1, "pairs"
    assert found.is_known
    assert of_some_rounds(one, two) is False


def test_two_nodes_of_one_host_begin_with_that_host():
    together = hosts.joined(hosts.told_apart(["n1", "n1"]))
    assert (hosts.first(together), hosts.count(together)) == ("n1", 2)
    one, two = merge_repeats([*wide(1, ["n1"] * 3, 2.0), *wide(2, [together] * 3, 1.1)])
    assert time_ratio(one, two).is_known


def test_a_trial_over_several_nodes_is_open_against_one_on_another_first_node():
    one, two = merge_repeats([*wide(1, ["n1"] * 3, 2.0), *wide(2, ["n2 + n3"] * 3, 1.1)])
    found = time_ratio(one, two)
    assert found.value == pytest.approx(2 / 1.1)
    assert not found.is_known


def test_two_nodes_that_share_their_first_are_unlike_two_others():
    one, two = merge_repeats([*wide(1, ["n1 + n2"] * 3, 2.0), *wide(2, ["n1 + n3"] * 3, 2.0)])
    assert not time_ratio(one, two).is_known


def test_rows_of_unlike_machines_are_compared_as_they_are():
    """As of `gpubench compare --field precision=…`, where each was measured on a kind of its own."""
    one, two = merge_repeats(
        [*wide(1, ["n1", "n2", "n1"], 2.0), *wide(2, ["n3", "n4", "n3"], 1.0, gpu_name="H")]
    )
    found, plain = time_ratio(one, two), ratio(one.epoch_times_s, two.epoch_times_s)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
