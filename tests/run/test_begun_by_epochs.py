"""A folder that a version before 0.2 began by whole epochs goes on by them, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest
import scripted
from benches import node_of
from scripted import Scripted

from gpubench.commands import sweep as command
from gpubench.node.node import Node
from gpubench.plan.sweep_options import ExperimentOptions, RunOptions
from gpubench.results.counting import select_counting_of_first_round
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import SteadyWindow, WholeEpochs
from gpubench.schema.window import WINDOW_S

ASKED = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nrounds = 1\n'
STEADY = SteadyWindow(window_s=WINDOW_S["cpu"])


class Desk:
    """Commands into one folder, and what they say."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def sweep(self, batches: str = "16,32", **fields: str) -> tuple[list[tuple[int, object]], list[str]]:
        """`gpubench sweep` with these fields: what it launched, and the lines of whole epochs that it said."""
        launcher = Scripted()
        self._monkeypatch.setattr(command, "make_this_node", lambda _: node_of(scripted.computer()))
        self._monkeypatch.setattr(
            Node, "start_fork_server", lambda node, **_: setattr(node, "launcher", launcher)
        )
        self._monkeypatch.setattr(Node, "wait_ready", lambda node, should_stop: True)  # noqa: ARG005
        self._monkeypatch.setattr(SweepState, "write_tables", lambda state: None)  # noqa: ARG005
        file = self.folder.parent / "x.toml"
        file.write_text(ASKED)
        options = ExperimentOptions(fields={"batch_size": batches, "device": "cpu", **fields})
        done = command.sweep(file, options, RunOptions(order="given", out=self.folder))
        assert done == 0
        said = [line for line in self._capsys.readouterr().err.splitlines() if "was begun by" in line]
        return [(order.trial.batch_size, order.protocol) for order in launcher.launched], said

    def grow_old(self, *unasked: str) -> None:
        """Makes its plans those of an earlier version. `unasked`: lines that a user of that version had not given."""
        for path in self.folder.glob("plans/*.toml"):
            lines = path.read_text().splitlines()
            assert 'protocol = "epochs"' in lines
            path.write_text(
                "\n".join(line for line in lines if line not in ('protocol = "epochs"', *unasked))
            )

    def kinds(self) -> set[str]:
        return {
            make_row(record).kind
            for record in select_counting_of_first_round(Results(self.folder).read_records()).values()
        }


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path / "results", monkeypatch, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("epochs", "unasked"), [("4", ()), ("3", ("epochs = 3",))], ids=["asked", "unasked"])
def test_what_is_missing_is_measured_by_as_many_epochs(
    desk: Desk, epochs: str, unasked: tuple[str, ...]
) -> None:
    desk.sweep(epochs=epochs)
    desk.grow_old(*unasked)
    alike = WholeEpochs(epochs=int(epochs), warmup_epochs=1)
    line = (
        f"{desk.folder} was begun by whole epochs and goes on by them (--epochs {epochs}); in another folder (--out) "
        "the steady rate is measured"
    )
    # The same command again measures nothing.
    assert desk.sweep() == ([], [line])
    assert desk.sweep("16,64") == ([(64, alike)], [line])
    assert desk.kinds() == {"whole epochs"}


def test_a_folder_of_this_version_measures_the_rate_unless_it_is_asked_otherwise(desk: Desk) -> None:
    desk.sweep("16", epochs="3")
    assert desk.sweep("16") == ([(16, STEADY)], [])
