"""A cluster of several `drystone host` processes on this machine, and its disks as systems to be measured."""

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Optional

from .systems import START_WAIT, Failed, System, end, process_cpu_seconds

#: Hosts, and with them the most copies.
HOSTS = 3


class Cluster:
    """`drystone demo --bare`: a process for each host and one for the directory, TCP on loopback between them."""

    def __init__(self, folder: Path, program: str):
        self.folder = folder / "cluster"
        self.program = program
        self.process: Optional[subprocess.Popen] = None
        self.processes: dict[str, int] = {}

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        log = open(self.folder / "log", "wb")
        command = [self.program, "demo", "--bare", "--hosts", str(HOSTS), "--dir", str(self.folder / "d")]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        deadline = time.monotonic() + START_WAIT
        while "Try:" not in self.said():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"the cluster did not start:\n{self.said()[-2000:]}")
            time.sleep(0.1)
        self.processes = {"directory": self.process.pid} | self.hosts()

    def hosts(self) -> dict[str, int]:
        """The processes of the hosts, by name: children of whichever thread has started them."""
        found = {}
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            for child in children.read_text().split():
                config = Path(f"/proc/{child}/cmdline").read_text().split("\0")
                found |= {Path(part).parent.name: int(child) for part in config if part.endswith("host.toml")}
        if len(found) != HOSTS:
            raise Failed(f"{HOSTS} hosts were started, but these processes found: {found}")
        return found

    def said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def cli(self, *arguments: str) -> dict:
        api = f"unix:{self.folder}/d/a/d/api.sock"
        command = [self.program, "--api", api, "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_WAIT)
        if done.returncode != 0:
            raise Failed(f"drystone {' '.join(arguments)} failed: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def socket(self, host: str) -> Path:
        return self.folder / "d" / host / "d" / "nbd.sock"

    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def cpu_by_process(self) -> dict[str, float]:
        """User and system time by process: the hosts, and the directory's."""
        if not self.is_up():
            raise Failed(f"the cluster has ended:\n{self.said()[-2000:]}")
        return {name: process_cpu_seconds(pid) for name, pid in self.processes.items()}

    def stop(self) -> None:
        if self.process is None:
            return
        end(self.process)
        self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)


class Copies(System):
    """A disk of so many copies, used at a host that holds one of them. The cost is that of the whole cluster."""

    def __init__(self, cluster: Cluster, copies: int, size: int, reads: str = "spread", note: str = ""):
        """`note`: what is to be known of the cluster, for its name."""
        self.cluster = cluster
        self.copies = copies
        self.size = size
        self.reads = reads
        self.name = f"drystone, {copies} {'copy' if copies == 1 else 'copies'}"
        self.disk = f"copies{copies}"
        if reads != "spread":
            self.name += f", read_locality={reads}"
            self.disk += reads
        self.name += note and f", {note}"
        self.host = "a"

    def policy(self) -> str:
        return f"failures_to_tolerate={self.copies - 1},stripes=1,read_locality={self.reads}"

    def start(self) -> None:
        self.cluster.cli("disk", "create", self.disk, str(self.size), "--policy", self.policy())
        shown = self.cluster.cli("disk", "show", self.disk)
        self.host = shown["components"][0]["host"]

    def stop(self) -> None:
        """The cluster goes as a whole."""

    def fio_target(self, case) -> list[str]:
        return ["--ioengine=nbd", f"--uri=nbd+unix:///{self.disk}?socket={self.cluster.socket(self.host)}"]

    def cpu_seconds(self) -> float:
        return sum(self.cluster.cpu_by_process().values())


class Parity(Copies):
    """A disk of rows with parity that tolerates one failure, as two copies do: on three hosts RAID-5 of 2+1."""

    def __init__(self, cluster: Cluster, size: int, note: str = ""):
        super().__init__(cluster, 2, size)
        self.name = "drystone, RAID-5 2+1" + (note and f", {note}")
        self.disk = "rows"

    def policy(self) -> str:
        return "failures_to_tolerate=1,method=parity,stripes=1"
