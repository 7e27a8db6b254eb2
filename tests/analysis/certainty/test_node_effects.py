"""What nodes differ by: by hand, against statsmodels' least squares, in any order, and against simulated truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated_nodes import Tables, process, seen

from gpubench.analysis.certainty import node_effects
from gpubench.analysis.certainty.interval import ratio
from gpubench.analysis.decided import decided
from gpubench.analysis.over_processes import between_nodes, of_some_rounds, time_ratio
from gpubench.analysis.repeats import merge_repeats
from gpubench.schema import hosts

AGAINST_A = {"b": 1.0, "a": -1.0}


def exp(*logs):
    return [(node, math.exp(log)) for node, log in logs]


def test_one_node_has_no_effect():
    assert node_effects.fit([exp(("a", 1), ("a", 2))]) is None
    assert node_effects.fit([]) is None


def test_the_effect_by_one_row_is_the_difference_of_its_means_with_the_variance_left_inside():
    fit = node_effects.fit([exp(("a", 0.0), ("b", 0.5), ("a", 0.2), ("b", 0.7), ("b", 0.6)), exp(("a", 9.0))])
    assert node_effects.effect(fit, AGAINST_A) == pytest.approx(0.5)
    part, besides = node_effects.parts(fit, AGAINST_A, 4)
    inside = (0.02 + 0.02) / 3
    assert part.variance == pytest.approx(inside / 2 + inside / 3)
    assert part.freedom == pytest.approx(3)
    assert part.size == 4
    # Nothing tells whether other rows differ by as much: of both rows, and of the one that tells, on both nodes.
    assert besides.variance == pytest.approx(4 * np.var([0.0, 0.5], ddof=1))
    assert besides.freedom == 1


def test_what_one_row_tells_of_many_nodes_is_known_with_their_freedom():
    steps = {"a": 0.0, "b": 0.3, "c": -0.1, "d": 0.2}
    fit = node_effects.fit([exp(*((node, at + more) for node, at in steps.items() for more in (0.0, 0.01)))])
    besides = node_effects.parts(fit, {"a": 0.5, "b": 0.5, "c": -1.0}, 2)[-1]
    assert besides.variance == pytest.approx(2 * 1.5 * np.var(list(steps.values()), ddof=1))
    assert besides.freedom == 3


def test_a_second_row_on_the_same_nodes_tells_whether_they_do_the_same():
    twice = [exp(*((node, at + more) for node in "ab" for more in (0.0, 0.01))) for at in (0.0, 5.0)]
    assert node_effects.rests_on_one(node_effects.fit(twice[:1]), AGAINST_A)
    assert not node_effects.rests_on_one(node_effects.fit(twice), AGAINST_A)
    assert len(node_effects.parts(node_effects.fit(twice), AGAINST_A, 2)) == 1
    once_more = [*twice[:1], exp(("a", 3.0), ("b", 3.5))]
    assert not node_effects.rests_on_one(node_effects.fit(once_more), AGAINST_A), (
        "one process on each will do"
    )


def test_rows_on_other_nodes_confirm_nothing():
    """a and b are connected by two rows, b and c by one, d and e by one that has nothing to do with these."""
    two = [
        exp(*((node, at + more) for node in nodes for more in (0.0, 0.01)))
        for at, nodes in ((0, "ab"), (5, "ab"))
    ]
    one = [exp(*((node, 3 + more) for node in nodes for more in (0.0, 0.02))) for nodes in ("bc", "de")]
    fit = node_effects.fit([*two, *one])
    alone = {
        pair: node_effects.rests_on_one(fit, {pair[0]: 1.0, pair[1]: -1.0})
        for pair in ("ab", "bc", "ac", "de")
    }
    assert alone == {"ab": False, "bc": True, "ac": True, "de": True}
    assert len(node_effects.parts(fit, {"a": 1.0, "b": -1.0}, 2)) + 1 == len(
        node_effects.parts(fit, {"a": 1.0, "c": -1.0}, 2)
    )


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcdef"), min_size=2, max_size=4), min_size=1, max_size=9))
def test_what_rests_on_one_row_is_not_connected_without_it(sets):
    rows = [
        exp(*((node, number / 7 + ord(node) % 3) for node in sorted(one))) for number, one in enumerate(sets)
    ]
    fit = node_effects.fit(rows)
    for node in fit.nodes[1:]:
        weights = {node: 1.0, fit.nodes[0]: -1.0}
        if not node_effects.connected(fit, weights):
            continue
        first = exp(*((one, 0.0) for one in fit.nodes[:1]))
        left = [node_effects.fit([*rows[:place], *rows[place + 1 :], first]) for place in range(len(rows))]
        apart = [
            one is None
            or not {node, fit.nodes[0]} <= set(one.nodes)
            or not node_effects.connected(one, weights)
            for one in left
        ]
        assert node_effects.rests_on_one(fit, weights) == any(apart)


def test_a_chain_of_rows_connects_nodes_and_a_row_of_one_node_tells_nothing():
    fit = node_effects.fit(
        [
            exp(("a", 0.0), ("a", 0.1), ("b", 1.0), ("b", 1.1)),
            exp(("b", 5.0), ("b", 5.1), ("c", 7.0), ("c", 7.1)),
            exp(("d", 3.0), ("d", 3.5)),
        ]
    )
    assert node_effects.effect(fit, {"c": 1.0, "a": -1.0}) == pytest.approx(3.0)
    near, far = (node_effects.parts(fit, {one: 1.0, "a": -1.0}, 2)[0] for one in "bc")
    assert far.variance == pytest.approx(2 * near.variance)
    assert (near.freedom, far.freedom) == (pytest.approx(2), pytest.approx(4))
    assert node_effects.connected(fit, {"a": 0.5, "b": -0.5})
    assert not node_effects.connected(fit, {"d": 1.0, "a": -1.0})
    assert node_effects.parts(fit, {"d": 1.0, "a": -1.0}, 2) is None
    assert node_effects.parts(fit, {"d": 0.5, "a": 0.5, "b": -1.0}, 2) is None


def test_processes_that_leave_nothing_of_their_own_noise_tell_no_error():
    fit = node_effects.fit([exp(("a", 0.0), ("b", 0.5))])
    assert node_effects.effect(fit, AGAINST_A) == pytest.approx(0.5)
    assert node_effects.parts(fit, AGAINST_A, 2) is None
    assert node_effects.own_part(fit, exp(("a", 0.0), ("b", 0.5)))[1] is None


def test_it_is_least_squares_over_rows_and_nodes():
    """Against numpy's, with a column for each row and each node but the first: effects, variances, what is left."""
    draw = np.random.default_rng(3)
    rows = [
        exp(*((str(node), draw.normal()) for node in draw.integers(0, 4, size=int(draw.integers(2, 6)))))
        for _ in range(12)
    ]
    fit = node_effects.fit(rows)
    each = [(row, int(node), math.log(time)) for row, own in enumerate(rows) for node, time in own]
    design = np.zeros((len(each), len(rows) + 3))
    for line, (row, node, _) in enumerate(each):
        design[line, row] = 1
        if node:
            design[line, len(rows) + node - 1] = 1
    values = np.array([value for *_, value in each])
    told, *_ = np.linalg.lstsq(design, values, rcond=None)
    assert fit.effects == pytest.approx([0, *told[-3:]])
    cov = np.linalg.pinv(design.T @ design)
    assert fit.inverse[1:, 1:] == pytest.approx(cov[-3:, -3:])
    hat = np.eye(len(each)) - design @ cov @ design.T
    of_several = [len({node for node, _ in row}) > 1 for row in rows]
    mine = [line for line, (row, *_) in enumerate(each) if of_several[row]]
    assert sum(one.freedom * one.rows for one in fit.patterns) == pytest.approx(hat[mine, mine].sum())
    left = hat @ values
    for row in range(len(rows)):
        mine = [line for line, (one, *_) in enumerate(each) if one == row]
        if not of_several[row]:
            continue
        freedom = hat[mine, mine].sum()
        middle, part = node_effects.own_part(fit, rows[row])
        assert middle == pytest.approx(told[row])
        assert part.freedom == pytest.approx(freedom)
        assert part.variance == pytest.approx((left[mine] ** 2).sum() / freedom / len(mine))


def test_rows_are_not_taken_for_equally_noisy():
    """Two rows, one ten times as noisy: the error is that of the mean of both differences, each with its own noise."""
    quiet = exp(("a", 0.0), ("a", 0.01), ("b", 0.5), ("b", 0.51))
    loud = exp(("a", 0.0), ("a", 0.1), ("b", 0.5), ("b", 0.6))
    fit = node_effects.fit([quiet, loud])
    (part,) = node_effects.parts(fit, AGAINST_A, 4)
    own = [
        (0.01**2 + 0.01**2) / 2,
        (0.1**2 + 0.1**2) / 2,
    ]  # of two inside each, and one of the two for the effect
    freedom = 2.5
    assert part.variance == pytest.approx(sum(one / freedom / 4 for one in own))
    assert part.freedom < 3, "nearly all of it is of one row"


def test_many_rows_of_two_processes_have_the_freedom_that_they_have():
    """By their noise alone it would be a third of it in the mean."""
    draw = np.random.default_rng(4)
    found = []
    for _ in range(200):
        rows = [exp(("a", draw.normal()), ("b", draw.normal())) for _ in range(30)]
        (part,) = node_effects.parts(node_effects.fit(rows), AGAINST_A, 2)
        found.append(part.freedom)
    assert 20 < np.mean(found) < 32


def test_the_interaction_is_an_f_test_between_a_rows_nodes_against_inside_them():
    rows = [
        exp(("a", 0.00), ("a", 0.02), ("b", 0.50), ("b", 0.52)),
        exp(("a", 1.00), ("a", 1.02), ("b", 1.70), ("b", 1.72)),
        exp(("a", 2.00), ("a", 2.02), ("b", 2.54), ("b", 2.56)),
    ]
    found = node_effects.fit(rows).interaction
    differences = np.array([0.5, 0.7, 0.54])
    between = 2 * ((differences - differences.mean()) ** 2 / 2).sum() / 2
    inside = 6 * 0.0002 / 6
    assert found.freedom == pytest.approx(2)
    assert found.chance == pytest.approx(stats.f.sf(between / inside, 2, 6))
    assert found.variance == pytest.approx((between - inside) / 2)
    of_rows, between_rows = node_effects.parts(node_effects.fit(rows), AGAINST_A, 4)
    # Both nodes of the comparison by themselves, and the six means that the effect is of.
    assert between_rows.variance == pytest.approx(found.variance * (2 + 6 / 9))
    assert between_rows.freedom == pytest.approx(2)
    assert of_rows.variance > 0


def test_without_several_processes_on_a_node_nothing_tells_of_an_interaction():
    once = node_effects.fit([exp(("a", 0.0), ("b", 0.5)), exp(("a", 0.0), ("b", 0.9))])
    assert once.interaction is None
    one_row = node_effects.fit([exp(("a", 0.0), ("a", 0.1), ("b", 0.5))])
    assert one_row.interaction is None
    exact = node_effects.fit([exp(("a", 0.1), ("a", 0.1), ("b", 0.3), ("b", 0.3))] * 3)
    assert exact.interaction.variance == 0


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.5, 2.0)), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_and_processes_changes_nothing(rows, chance):
    other = [chance.sample(row, len(row)) for row in rows]
    chance.shuffle(other)
    one, two = node_effects.fit(rows), node_effects.fit(other)
    if one is None:
        assert two is None
        return
    assert (one.nodes, one.kin, one.effects, one.patterns, one.interaction) == (
        two.nodes,
        two.kin,
        two.effects,
        two.patterns,
        two.interaction,
    )
    assert (one.inverse == two.inverse).all()


# ---- rows of tables ----


def merged(*rows):
    """Rows as (round, node, time) of each process."""
    return merge_repeats(
        [process(place, time, number, node) for place, row in enumerate(rows) for number, node, time in row]
    )


NEAR = (1.0, 1.01, 0.99)


def on(nodes, times):
    return list(zip(range(1, len(nodes) + 1), nodes, times, strict=True))


def test_rows_of_one_node_among_others_are_compared_as_they_are():
    one, other, far = merged(on("aaa", NEAR), on("aaa", (1.2, 1.25, 1.23)), on("bbb", NEAR))
    assert not between_nodes(other, one)
    alone = merged(on("aaa", NEAR), on("aaa", (1.2, 1.25, 1.23)))
    assert time_ratio(other, one) == time_ratio(alone[1], alone[0])
    assert between_nodes(far, one)


def test_rows_on_the_same_nodes_round_by_round_are_compared_round_by_round():
    """Whatever these differ by cancels."""
    one, other = merged(on("aba", (1.0, 2.0, 1.01)), on("aba", (1.1, 2.2, 1.111)))
    found = time_ratio(other, one)
    assert found.value == pytest.approx(1.1)
    assert found.high - found.low < 1e-9
    assert not between_nodes(other, one)


def with_references(count):
    """A row on a, one on b that takes a tenth longer, and references on both; b is twice as slow."""
    reference = [(1, "a", 1.0), (1, "b", 2.0), (2, "a", 1.01), (2, "b", 2.02), (3, "a", 0.99), (3, "b", 1.98)]
    return merge_repeats(
        [process(1, time, number, "a") for number, time in enumerate(NEAR, 1)]
        + [process(2, 2.2 * time, number, "b") for number, time in enumerate(NEAR, 1)]
        + [
            process(place, time, number, node, "ab".index(node))
            for place in (0, *range(3, 2 + count))
            for number, node, time in reference
        ]
    )


def test_what_nodes_differ_by_is_taken_away_and_its_error_stays():
    """b is twice as slow; two rows know it to a per cent or so."""
    one, other, *_ = with_references(2)
    found = time_ratio(other, one)
    assert found.value == pytest.approx(1.1)
    assert between_nodes(other, one)
    straight = ratio([2.2 * time for time in NEAR], NEAR)
    assert len(found.log.parts) == 3
    assert found.log.error > straight.log.error
    assert found.low < 1.1 < found.high < 1.2


def test_one_reference_alone_decides_nothing_between_nodes_that_differ_much():
    """What it tells of b may be of its own."""
    one, other, *_ = with_references(1)
    found = time_ratio(other, one)
    assert found.value == pytest.approx(1.1)
    assert found.is_known
    assert found.low < 0.5 < 2 < found.high
    assert [one.word for one in decided([found]).ratios] == ["open"]


@pytest.mark.parametrize(
    "rows",
    [
        (on("aaa", NEAR), on("bbb", (2.0, 2.01, 1.99))),  # nothing connects them
        (on("ab", (1.0, 2.0)), on("bb", (2.0, 2.01))),  # one process on each tells no error
    ],
)
def test_without_a_known_effect_the_comparison_is_open(rows):
    one, other = merged(*rows)
    found = time_ratio(other, one)
    assert not found.is_known
    assert (found.low, found.high) == (0.0, math.inf)
    assert [one.word for one in decided([found]).ratios] == ["open"]
    assert [one.word for one in decided([found], looks=[1]).ratios] == ["open"]


def test_few_rounds_on_one_node_do_not_decide_alone():
    """Three of eight rounds on the same node: all processes tell more."""
    one, other = merged(
        on("aaaaaaaa", (*NEAR, 1.0, 1.02, 0.98, 1.0, 1.0)), on("aaabbbbb", (*NEAR, 2.0, 2.02, 1.98, 2.0, 2.0))
    )
    assert between_nodes(other, one)
    assert time_ratio(other, one).processes == (8, 8)
    half = merged(on("aaaaaa", NEAR + NEAR), on("aaabbb", NEAR + tuple(2 * time for time in NEAR)))
    assert time_ratio(half[1], half[0]).processes == (3, 3)


# ---- simulated truth ----


@pytest.mark.parametrize("effect", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("rounds", [3, 10])
@pytest.mark.parametrize("dealt", ["at random", "one node each, 1 reference"])
def test_intervals_between_nodes_hold_the_truth(dealt, rounds, effect):
    """300 tables of ten equal rows: 92 to 98 %, and with three processes to 98.6 %, as of one node (the guard's
    price); more where one reference alone tells, for it counts with as much again as it tells."""
    draw = np.random.default_rng(int(rounds + 100 * effect))
    found = seen(Tables(dealt=dealt, rounds=rounds, nodes=3, effect=effect), draw, 300)
    assert found.corrected > 0.6
    assert not found.open
    most = 1.01 if dealt == "one node each, 1 reference" else 0.988 if rounds == 3 else 0.98
    assert 0.92 < found.holds_corrected < most
    assert found.wrong <= 0.075, "5 % of 300 tables are 15, give or take 4"


def test_rows_of_unlike_noise_are_held_too():
    draw = np.random.default_rng(9)
    found = seen(Tables(dealt="at random", rounds=5, noises=(0.002, 0.02)), draw, 300)
    assert 0.92 < found.holds_corrected < 0.98
    assert found.wrong <= 0.075


def test_without_a_reference_rows_of_unlike_nodes_are_open():
    found = seen(Tables(dealt="one node each"), np.random.default_rng(5), 20)
    assert found.open == found.corrected == 1
    assert found.wrong == 0


def test_where_nodes_do_not_the_same_to_all_rows_intervals_are_wider():
    """With three references their spread shows it, and counts."""
    draw = np.random.default_rng(6)
    of = Tables(dealt="one node each, 3 references", rounds=10, interaction=0.03, noises=(0.01,))
    assert seen(of, draw, 100).holds_corrected > 0.85
    blind = Tables(dealt="one node each, 1 reference", rounds=10, interaction=0.03, noises=(0.01,))
    assert seen(blind, draw, 100).holds_corrected > 0.92, "one reference can't see it, so it is reckoned with"


def wide(row, hosts, time, **values):
    """A row with a process a round on such a host, and a noise that is the same in rows of as many rounds."""
    return [
        replace(process(row, time * (1 + 0.01 * (number % 3)), number, host), **values)
        for number, host in enumerate(hosts, start=1)
    ]


def test_a_trial_over_several_nodes_is_compared_by_rounds_with_one_on_its_first_node():
    """What a sweep in one batch job measures on one node and on two is on the same node as far as it can be."""
    hosts = ["n1", "n1", "n3"]
    one, two = merge_repeats([*wide(1, hosts, 2.0), *wide(2, [f"{host} + n2" for host in hosts], 1.1)])
    found = time_ratio(one, two)
    assert found.value == pytest.approx(2 / 1.1)
    assert len(found.log.parts) == 1, "pairs"
    assert found.is_known
    assert not between_nodes(one, two)
    assert of_some_rounds(one, two) is False


def test_two_nodes_of_one_host_begin_with_that_host():
    together = hosts.joined(hosts.told_apart(["n1", "n1"]))
    assert (hosts.first(together), hosts.count(together)) == ("n1", 2)
    one, two = merge_repeats([*wide(1, ["n1"] * 3, 2.0), *wide(2, [together] * 3, 1.1)])
    assert time_ratio(one, two).is_known


def test_a_trial_over_several_nodes_is_open_against_one_on_another_first_node():
    """By how much two nodes together differ from two others, no effect of single nodes tells."""
    rows = [*wide(1, ["n1"] * 3, 2.0), *wide(2, ["n2 + n3"] * 3, 1.1), *wide(3, ["n1", "n2"] * 3, 4.0)]
    one, two, _ = merge_repeats(rows)
    found = time_ratio(one, two)
    assert found.value == pytest.approx(2 / 1.1)
    assert not found.is_known


def test_two_nodes_that_share_their_first_are_unlike_two_others():
    one, two = merge_repeats([*wide(1, ["n1 + n2"] * 3, 2.0), *wide(2, ["n1 + n3"] * 3, 2.0)])
    assert not time_ratio(one, two).is_known


def test_rows_of_unlike_machines_are_compared_as_they_are_whatever_nodes_of_each_differ_by():
    """As of `gpubench compare --field precision=…`, where each was measured on a kind of its own."""
    rows = [
        *wide(1, ["n1", "n2", "n1"], 2.0),
        *wide(2, ["n3", "n4", "n3"], 1.0, gpu_name="H"),
        *wide(3, ["n5", "n5", "n5"], 4.0, gpu_name="I"),
    ]
    one, two, three = merge_repeats(rows)
    for over, under in ((one, two), (three, one)):
        found, plain = time_ratio(over, under), ratio(over.epoch_times_s, under.epoch_times_s)
        assert (found.low, found.high) == pytest.approx((plain.low, plain.high))
    assert not between_nodes(one, two)
