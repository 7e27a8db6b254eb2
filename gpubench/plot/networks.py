"""What more GPUs bring, network by network, the smallest first. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.network_size import by_size, gmacs, name_of, network, of_networks, short
from gpubench.analysis.scaling import Comparison, named
from gpubench.basics.words import clean
from gpubench.plot import scaling
from gpubench.plot.description import Picture, PlottedSeries
from gpubench.plot.shared import bars, caption, rows_of
from gpubench.plot.subject import Subject

AS_FAST = 1.0


def pictures(subject: Subject) -> Sequence[Picture]:
    """A bar for each network, and one beside the other for each way to share its work."""
    table = subject.table
    found = of_networks([one for one in scaling.compared(table) if one.row is not one.baseline])
    if not found:
        return ()
    every = {network(one.row): one.row for same in found for one in same}
    sized = sorted(every.values(), key=by_size)
    places = {network(row): float(place) for place, row in enumerate(sized)}
    rows = {id(row): row for row in rows_of(table)}
    batches = len({one.row.batch_size for same in found for one in same}) > 1
    series = [
        PlottedSeries(
            name=_name(same[0], batches),
            look=look,
            points=tuple(
                scaling.compared_point(subject, rows[id(one.row)], one, places[network(one.row)])
                for one in same
            ),
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
                [rows[id(one.row)] for same in found for one in same],
            ),
        ),
    )


def _name(one: Comparison, batches: bool) -> str:
    """`ddp on 2 GPUs against single on 1 GPU, strong scaling`."""
    device = "rank" if one.row.device == "cpu" else "GPU"
    share = f", batch {one.row.batch_size:,}" if batches and one.row.batch_size else ""
    return clean(f"{named(one.row, device)} against {named(one.baseline, device)}, {one.kind} scaling{share}")
