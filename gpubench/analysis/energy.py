"""What an epoch's energy buys. Pure arithmetic over a row's energy, time and images."""

from __future__ import annotations

from gpubench.schema.row import Row


def images_per_joule(row: Row) -> float | None:
    """`images_per_epoch / energy_j`; None where either is not known (an energy of 0 J is none)."""
    images, energy = row.images_per_epoch, row.energy_j
    return images / energy if images and energy else None


def edp_js(row: Row) -> float | None:
    """Energy-delay product of an epoch in J s: `energy_j * epoch_time_s`; None where either is not known."""
    energy, time = row.energy_j, row.epoch_time_s
    return energy * time if energy and time else None
