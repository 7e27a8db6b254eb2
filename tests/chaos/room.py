"""The folders of one attack, and faults of the file system under them: a small tmpfs in a user namespace of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kinds import Damage, Place
from roles import MARK

REPOSITORY = Path(__file__).parents[2]
PLACES: tuple[Place, ...] = ("results", "tmp", "images")
SIZE = "48m"
INODES = 4000
_HOLD = 'mount -t tmpfs -o size=$1,nr_inodes=$2 none "$0" && echo mounted && exec cat'
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0"'


class NoNamespacesError(Exception):
    """This machine lets nobody mount a file system of their own."""


class Room:
    """Where one attack's sweep lives: results, images and temporary files are all its own.

    `damaged`: the place that lies on a small tmpfs, which only processes of this room see; None: there is none.
    Raises NoNamespacesError where that is not allowed.
    """

    def __init__(self, damaged: Place | None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="chaos-"))
        self.token = self.home.name
        self._holder: subprocess.Popen[str] | None = None
        for place in PLACES:
            (self.home / place).mkdir()
        if damaged is not None:
            try:
                self._mount(damaged)
            except BaseException:
                self.close()
                raise

    def _mount(self, place: Place) -> None:
        # It holds the namespace until this process closes its input, or ends.
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _HOLD]
        command += [str(self.home / place), SIZE, str(INODES)]
        pipe = subprocess.PIPE
        try:
            holder = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        except OSError as error:
            raise NoNamespacesError(f"unshare: {error.strerror}") from error
        assert holder.stdout is not None
        if holder.stdout.readline() != "mounted\n":
            _, said = holder.communicate()
            raise NoNamespacesError(said.strip() or "unshare failed")
        self._holder = holder

    # ---- as seen from here ----

    def seen(self, place: Place) -> Path:
        """The place as the room's processes see it."""
        path = self.home / place
        return path if self._holder is None else Path(f"/proc/{self._holder.pid}/root{path}")

    @property
    def results(self) -> Path:
        return self.seen("results") / "run"

    # ---- processes in it ----

    def start(self, options: tuple[str, ...], said: str) -> subprocess.Popen[bytes]:
        """`gpubench sweep` with those options. What it prints goes into SAID.out and SAID.err in `home`."""
        command = [sys.executable, "-m", "gpubench", "sweep", "--json"]
        command += ["--out", str(self.home / "results" / "run"), *options]
        with (self.home / f"{said}.out").open("wb") as out, (self.home / f"{said}.err").open("wb") as err:
            return subprocess.Popen(
                [*self._enter(), *command],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=self._environment(),
            )

    def _environment(self) -> dict[str, str]:
        environment = {
            **os.environ,
            MARK: self.token,
            "GPUBENCH_DATA": str(self.home / "images"),
            "TMPDIR": str(self.home / "tmp"),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")])),
            "COLUMNS": "300",
        }
        environment.pop("GPUBENCH_OUT", None)
        return environment

    def _enter(self) -> list[str]:
        if self._holder is None:
            return []
        return ["nsenter", "--preserve-credentials", "--user", "--mount", "-t", str(self._holder.pid)]

    # ---- faults ----

    def damage(self, damage: Damage) -> None:
        """Does it, now."""
        place = self.seen(damage.place)
        match damage.fault:
            case "full":
                with contextlib.suppress(OSError), (place / "filler").open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(1 << 16))
                # What a write of 64 KiB left over.
                with contextlib.suppress(OSError), (place / "filler").open("ab", buffering=0) as file:
                    while True:
                        file.write(bytes(512))
            case "inodes":
                (place / "filler").mkdir()
                with contextlib.suppress(OSError):
                    for number in range(2 * INODES):
                        (place / "filler" / str(number)).touch()
            case "readonly":
                self._run(_READ_ONLY, damage.place)
            case "removed":
                _remove(self.results)

    def lift(self, damage: Damage) -> None:
        """Ends it: there is room again, and it can be written. What was removed stays removed."""
        filler = self.seen(damage.place) / "filler"
        match damage.fault:
            case "full":
                filler.unlink()
            case "inodes":
                shutil.rmtree(filler)
            case "readonly":
                self._run('umount "$0"', damage.place)

    def _run(self, script: str, place: Place) -> None:
        subprocess.run([*self._enter(), "sh", "-c", script, str(self.home / place)], check=True)

    def close(self) -> None:
        """Removes all."""
        if self._holder is not None:
            self._holder.communicate()
        shutil.rmtree(self.home)


def _remove(folder: Path) -> None:
    """A folder into which others write meanwhile."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
