"""A SLURM of its own for tests: munge, a controller and two nodes on this machine, without systemd, in one folder.

The nodes differ in their ports and, where this user may make namespaces, in their host names (n1, n2), which both
resolve. Each has two GPUs that are none: links to /dev/null, numbered as SLURM numbers real ones, so that jobs get
CUDA_VISIBLE_DEVICES. Two partitions share them: `test` takes nodes away from `low`. What the cluster can't show: limits
of memory, cgroups, accounting.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import users
from users import User

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
"""Debian's servers are not on a user's path."""
NODES, CPUS, GPUS, MEMORY_MIB = 2, 4, 2, 2000
LIMIT_S = 200.0
"""How long a test waits for anything. The clock of a job's time limit ticks every 30 s."""
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY", "DEADLINE")
"""States after which a job does nothing more."""

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
# A job that is requeued waits until its old credential has run out: two minutes, if nobody asks for less.
AuthInfo=socket={folder}/munge.sock,cred_expire=5
{listening}StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout=60
KillWait=5
MinJobAge=600
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
PropagateResourceLimits=NONE
GresTypes=gpu
NodeName=DEFAULT CPUs={cpus} RealMemory={memory_mib} Gres=gpu:{gpus} State=UNKNOWN
{nodes}
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=10
PartitionName=low Nodes=ALL MaxTime=INFINITE PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
"""


def missing() -> list[str]:
    """Programs that a cluster needs and that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


@dataclass(kw_only=True, slots=True)
class Cluster:
    """A running SLURM. Whoever starts one stops it."""

    folder: Path
    environ: Mapping[str, str]
    """What commands need to find it, and what jobs are given."""
    has_host_names: bool
    """Whether each node has a host name of its own."""
    users: Sequence[User]
    """Two users without rights who may submit jobs; none where this user is not root."""
    _out: Path = field(init=False)

    def __post_init__(self) -> None:
        self._out = self.folder / "jobs"
        self._out.mkdir()

    # ---- asking SLURM ----

    def run(self, *command: str) -> str:
        """What one of SLURM's commands says; fails the test where it fails."""
        done = subprocess.run(
            command, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def is_given_time(self, job: str, *, minutes: int) -> bool:
        """Sets a job's time limit. False where SLURM takes no change: while a start of it is ending."""
        command = ("scontrol", "update", f"JobId={job}", f"TimeLimit={minutes}")
        return not subprocess.run(
            command, env=self.environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        ).returncode

    def submit_as(self, user: User, script: str, *options: str) -> str:
        """The same of another user's job, which begins in that user's home."""
        out = ("--parsable", f"--output={user.home}/%j.out", f"--chdir={user.home}")
        environ = self.environ | {"HOME": str(user.home), "USER": user.name, "LOGNAME": user.name}
        command = [*_named(self.folder, "login", True), *user.before, "sbatch", *out, *options]
        done = subprocess.run(
            command, env=environ, input=f"#!/bin/bash\n{script}\n", capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout.strip().split(";")[0]

    def submit(self, script: str, *options: str) -> str:
        """The id of a job that runs this script, without its first line; what it says is `told`."""
        file = self._out / f"script{len(list(self._out.glob('script*')))}"
        file.write_text(f"#!/bin/bash\n{script}\n")
        said = self.run(
            "sbatch", "--parsable", f"--output={self._out}/%j.out", "--open-mode=append", *options, str(file)
        )
        return said.split(";")[0]

    def state(self, job: str) -> str:
        """`PENDING`, `RUNNING`, …; of an array its tasks' states, with commas between."""
        states = self.run("squeue", "-h", "-t", "all", "-r", "-j", job, "-o", "%T").split()
        return ",".join(states)

    def told(self, job: str) -> str:
        """What a job has said so far, in all its starts."""
        files = (folder / f"{job}.out" for folder in (self._out, *(user.home for user in self.users)))
        return "".join(file.read_text() for file in files if file.exists())

    def await_state(self, job: str, states: Collection[str]) -> str:
        """Waits until all of a job is in one of these states; returns what it is in."""
        found = ""

        def there() -> bool:
            nonlocal found
            found = self.state(job)
            return bool(found) and all(state in states for state in found.split(","))

        self.wait(there, lambda: f"job {job} is {found}, not {' or '.join(states)}:\n{self.told(job)}")
        return found

    def await_end(self, job: str) -> str:
        return self.await_state(job, OVER)

    def wait(self, ready: Callable[[], bool], otherwise: Callable[[], str]) -> None:
        """Asks until it is ready; fails the test with the words of `otherwise` where it takes too long."""
        deadline = time.monotonic() + LIMIT_S
        while not ready():
            assert time.monotonic() < deadline, otherwise()
            time.sleep(0.1)

    # ---- its end ----

    def clear(self) -> None:
        """Ends all jobs, and returns when none of their processes is left."""
        for scope in (("--full",), ()):  # what a job's script has started, then the rest
            if not (left := self.run("squeue", "-h", "-o", "%A").split()):
                return
            self.run("scancel", *scope, *sorted(set(left)))
        deadline = time.monotonic() + 20
        while self.run("squeue", "-h", "-o", "%i") and time.monotonic() < deadline:
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends all jobs, then the servers, each by its own pid file."""
        if _alive(self.folder / "slurmctld.pid", "slurmctld"):
            self.clear()
        _stop(self.folder)


def start() -> Cluster:
    """A cluster whose nodes are idle. Raises RuntimeError, with what the servers said, where that can't be."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)  # munge looks who may write on the way to its socket
    environ = {**os.environ, "PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
    for name in [name for name in environ if name.startswith(("SLURM_", "SBATCH_")) and name != "SLURM_CONF"]:
        del environ[name]  # the tests themselves may run inside a job
    try:
        _write(folder)
        names = _can_name_hosts(folder)
        others = users.made(folder) if names and os.getuid() == 0 else []
        _serve(folder, environ, ("munged", "--force", *_munge_files(folder)))
        host = socket.gethostname().split(".")[0]
        conf = ("-f", str(folder / "slurm.conf"))
        _serve(folder, environ, (*_named(folder, host, names), "slurmctld", "-c", *conf))
        for node in _nodes():
            _serve(folder, environ, (*_named(folder, node, names), "slurmd", "-N", node, *conf))
        cluster = Cluster(folder=folder, environ=environ, has_host_names=names, users=others)
        deadline = time.monotonic() + 30
        idle = ["sinfo", "-h", "-N", "-p", "test", "-o", "%T"]
        while cluster.run(*idle).split() != ["idle"] * NODES:
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"the nodes are not idle after 30 s: {cluster.run(*idle)}\n{_logs(folder)}"
                )
            time.sleep(0.1)
    except BaseException:
        _stop(folder)
        raise
    return cluster


def _nodes() -> list[str]:
    return [f"n{number}" for number in range(1, NODES + 1)]


def _write(folder: Path) -> None:
    """All files that the servers read."""
    host = socket.gethostname().split(".")[0]
    controller, *ports = _free_ports(1 + NODES)
    nodes = [
        f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
        for name, port in zip(_nodes(), ports, strict=True)
    ]
    # Where the host's name is that of the loopback, nobody outside can reach a port.
    local = {found[4][0] for found in socket.getaddrinfo(host, None, socket.AF_INET)} == {"127.0.0.1"}
    listening = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n" if local else ""
    text = CONF.format(
        host=host, user=_user(), folder=folder, controller_port=controller, listening=listening,
        cpus=CPUS, gpus=GPUS, memory_mib=MEMORY_MIB, nodes="\n".join(nodes),
    )  # fmt: skip
    (folder / "slurm.conf").write_text(text)
    for name in ("state", *(f"spool.{node}" for node in _nodes())):
        (folder / name).mkdir()
    for number in range(GPUS):
        (folder / f"gpu{number}").symlink_to("/dev/null")
    devices = f"{folder}/gpu[0-{GPUS - 1}]"
    (folder / "gres.conf").write_text(f"NodeName=n[1-{NODES}] Name=gpu File={devices} Flags=nvidia_gpu_env\n")
    names = " ".join(_nodes())
    (folder / "hosts").write_text(f"127.0.0.1 localhost {host} {names}\n{Path('/etc/hosts').read_text()}")
    (folder / "munge").mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all held until the last is found."""
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _munge_files(folder: Path) -> list[str]:
    return [
        f"--key-file={folder}/munge/key",
        f"--seed-file={folder}/munge/seed",
        f"--socket={folder}/munge.sock",
        f"--pid-file={folder}/munged.pid",
        f"--log-file={folder}/munged.log",
    ]


def _named(folder: Path, host: str, possible: bool) -> Sequence[str]:
    """What stands before a command that is to see a host of this name."""
    if not possible:
        return ()
    steps = ["mount --make-rprivate /", f"mount --bind {folder}/hosts /etc/hosts", f"hostname {host}"]
    if (folder / "passwd").exists():
        steps += users.mounts(folder)
    return ("unshare", "--mount", "--uts", "sh", "-c", " && ".join([*steps, 'exec "$@"']), "sh")


def _can_name_hosts(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run([*_named(folder, "n1", True), "true"], capture_output=True, check=False)
    return tried.returncode == 0


def _serve(folder: Path, environ: Mapping[str, str], command: Sequence[str]) -> None:
    """Starts a server, which goes into the background by itself once it is ready."""
    with (folder / "servers.log").open("ab") as log:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=30, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}\n{_logs(folder)}")


def _logs(folder: Path) -> str:
    """The last lines that each server wrote."""
    return "\n".join(
        f"{log.name}: {line}" for log in folder.glob("*.log") for line in log.read_text().splitlines()[-10:]
    )


def _stop(folder: Path) -> None:
    """Ends what runs by its pid files, and takes the folder away. A last line says what would not end."""
    left = []
    for program, pattern in (
        ("slurmd", "slurmd.*.pid"),
        ("slurmctld", "slurmctld.pid"),
        ("munged", "munged.pid"),
    ):
        for file in folder.glob(pattern):
            if (pid := _alive(file, program)) is None:
                continue
            os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + 10
            while _alive(file, program, pid) and time.monotonic() < deadline:
                time.sleep(0.05)
            if _alive(file, program, pid):
                os.kill(pid, signal.SIGKILL)
                left.append(f"{program} ({pid})")
    shutil.rmtree(folder, ignore_errors=True)
    if left:
        raise RuntimeError(f"these did not end when they were asked to, and were killed: {', '.join(left)}")


def _alive(file: Path, program: str, known: int | None = None) -> int | None:
    """The process of a pid file, if it lives and still is that program; None else. `known`: when the file is gone."""
    try:
        pid = known or int(file.read_text())
        name, rest = Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].rsplit(")", 1)
    except (OSError, ValueError):
        return None
    return pid if name.startswith(program) and rest.split()[0] != "Z" else None


def _user() -> str:
    return subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
