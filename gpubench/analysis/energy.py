"""What an epoch's energy buys. Pure arithmetic over a row's energy, time and images."""

from __future__ import annotations

from collections.abc import Mapping

from gpubench.schema.row import Row


def images_per_joule(row: Row) -> float | None:
    """`images_per_epoch / energy_j`; None where either is not known (an energy of 0 J is none)."""
    images, energy = row.images_per_epoch, row.energy_j
    return images / energy if images and energy else None


def edp_js(row: Row) -> float | None:
    """Energy-delay product of an epoch in J s: `energy_j * epoch_time_s`; None where either is not known."""
    energy, time = row.energy_j, row.epoch_time_s
    return energy * time if energy and time else None


def divided(joules_by_gpu: Mapping[str, float], shares_by_gpu: Mapping[str, float | None]) -> float | None:
    """A job's joules by an estimate: of each GPU's its share, from 0 to 1.

    None where no joules are known, a GPU's share is not, or nothing would be left for the job.
    """
    shares = {gpu: shares_by_gpu.get(gpu) for gpu in joules_by_gpu}
    known = {gpu: share for gpu, share in shares.items() if share is not None}
    if len(known) < len(shares):
        return None
    return sum(joules * known[gpu] for gpu, joules in joules_by_gpu.items()) or None
