"""What more GPUs bring, network by network, the smallest first. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpubench.analyze.network_size import FEWEST_NETWORKS, NETWORK
from gpubench.basics.rounding import half_up
from gpubench.basics.words import clean
from gpubench.plot import scaling
from gpubench.plot.description import Picture, PlottedSeries
from gpubench.plot.shared import bars, caption
from gpubench.plot.subject import Subject
from gpubench.plot.table import DevicesCompared, count_devices, known, name_devices
from gpubench.schema.row import Row

AS_FAST = 1.0


def pictures(subject: Subject) -> Sequence[Picture]:
    """A bar for each network, and one beside the other for each way to share its work."""
    table = subject.table
    found = of_networks([one for one in table.compared if one.row is not one.baseline])
    if not found:
        return ()
    every = {network(one.row): one.row for same in found for one in same}
    sized = sorted(every.values(), key=by_size)
    places = {network(row): float(place) for place, row in enumerate(sized)}
    batches = len({one.row.batch_size for same in found for one in same}) > 1
    series = [
        PlottedSeries(
            name=_name(same[0], batches),
            look=look,
            points=tuple(scaling.compared_point(subject, one, places[network(one.row)]) for one in same),
        )
        for look, same in enumerate(found)
    ]
    drawn = f"Speedup: {series[0].name}. " if len(series) == 1 else "Speedup, all else equal. "
    return (
        Picture(
            name="networks",
            experiment=table.name,
            of=table.title,
            shows="speedup by network",
            panels=(
                bars(
                    "speedup",
                    series,
                    [clean(f"{name_of(row, table.varied)} ({short(gmacs(row))})") for row in sized],
                    line_at=AS_FAST,
                ),
            ),
            caption=caption(
                table,
                f"{drawn}1: as fast. In parentheses: GMACs an image, the fewest first.",
                [one.row for same in found for one in same],
            ),
        ),
    )


def of_networks(found: Sequence[DevicesCompared]) -> list[list[DevicesCompared]]:
    """The comparisons of one network each, from FEWEST_NETWORKS networks on, by ascending size.

    Each list is of one kind of scaling, of one strategy on equally many devices, and of one batch size where networks
    were measured with several. A network whose size is not known is in none.
    """
    places: dict[tuple[object, ...], list[DevicesCompared]] = {}
    for one in found:
        row, base = one.row, one.baseline
        if gmacs(row):
            place = (one.kind, count_devices(row), count_devices(base), row.strategy, row.device)
            places.setdefault(place, []).append(one)
    return [
        sorted(same, key=lambda one: by_size(one.row))
        for same in itertools.chain.from_iterable(map(_once, places.values()))
        if len(same) == len({network(one.row) for one in same}) >= FEWEST_NETWORKS
    ]


def _once(same: Sequence[DevicesCompared]) -> list[list[DevicesCompared]]:
    """As they are where each network is there once, else those of each batch size by themselves."""
    if len({network(one.row) for one in same}) == len(same):
        return [list(same)]
    found: dict[object, list[DevicesCompared]] = {}
    for one in same:
        found.setdefault((one.row.batch_size, one.baseline.batch_size), []).append(one)
    return list(found.values())


def by_size(row: Row) -> tuple[float, tuple[str, ...]]:
    """What networks are sorted by."""
    return gmacs(row), network(row)


def network(row: Row) -> tuple[str, ...]:
    """What tells networks apart."""
    return tuple(str(known(row, field)) for field in NETWORK)


def gmacs(row: Row) -> float:
    """The work of an image, 10⁹ operations; 0 where it is not known."""
    return row.gmacs_per_image or 0.0


def short(gmacs: float) -> str:
    """With two digits that count."""
    return f"{gmacs:.2g}" if gmacs < 10 else f"{half_up(gmacs)}"


def name_of(row: Row, fields: Sequence[str]) -> str:
    """`resnet18`, or `mlp, width 4.0` where the width is among these fields."""
    return f"{row.model}, width {known(row, 'width')}" if "width" in fields else str(row.model)


def _name(one: DevicesCompared, batches: bool) -> str:
    """`ddp on 2 GPUs against single on 1 GPU, strong scaling`."""
    device = "rank" if one.row.device == "cpu" else "GPU"
    share = f", batch {one.row.batch_size:,}" if batches and one.row.batch_size else ""
    return clean(
        f"{name_devices(one.row, device)} against {name_devices(one.baseline, device)}, {one.kind} scaling{share}"
    )
