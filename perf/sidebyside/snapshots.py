"""What snapshots and clones cost the disk that guests write: `perf/run snapshots`.

One host with its device in memory. Disks with 0, 1, 32 and 256 snapshots are measured in turn; between snapshots 1 % of the blocks are written anew. What
one disk leaves in the log is destaged while the next is measured, so every second round goes the other way round. Beside them qemu-nbd serves a qcow2 image with as many others behind it.
"""

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from .cases import Case
from .measure import fill, measure, median_of, run_fio
from .systems import Drystone, Failed, Server, end, process_cpu_seconds

MIB = 1 << 20
COUNTS = [0, 1, 32, 256]
CASES = [
    Case("4k randread qd1", "randread", 4096, 1),
    Case("4k randread qd32", "randread", 4096, 32),
    Case("4k randwrite qd1", "randwrite", 4096, 1),
    Case("4k randwrite qd32", "randwrite", 4096, 32),
]
#: Images in a chain at most: qemu-nbd opens them all.
CHAIN_MAX = 256
#: How often writes are measured with and without deletions beside them.
DELETE_TURNS = 4


class Host(Drystone):
    """A host with room for all disks."""

    def __init__(self, folder: Path, disk_size: int, room: int, program: str):
        super().__init__(folder, room, program)
        self.disk_size = disk_size

    def ready(self) -> None:
        deadline = time.monotonic() + 60
        while not self.api.exists() and time.monotonic() < deadline:
            time.sleep(0.05)

    def ask(self, *arguments: str) -> dict:
        command = [self.program, "--api", f"unix:{self.api}", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise Failed(f"drystone {' '.join(arguments)} failed: {done.stderr.strip()}\n{self.log_tail()}")
        return json.loads(done.stdout) if done.stdout.strip() else {}

    def soon(self, *arguments: str) -> dict:
        """The same with patience: the first snapshot has the disk group converted."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.ask(*arguments)
            except Failed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


class Export:
    """A disk of the host as a system that fio measures."""

    def __init__(self, host: Host, export: str):
        self.host, self.export, self.size = host, export, host.disk_size
        self.name = export

    def fio_environment(self):
        return None

    def flush(self) -> None:
        pass

    def fio_target(self, case) -> list[str]:
        return ["--ioengine=nbd", f"--uri=nbd+unix:///{self.export}?socket={self.host.socket}"]

    def cpu_seconds(self) -> float:
        return process_cpu_seconds(self.host.process.pid)


class Chain(Server):
    """qemu-nbd on a qcow2 image with so many others behind it."""

    def __init__(self, folder: Path, size: int, count: int):
        self.name = f"qcow2 chain of {count}"
        super().__init__(folder, size)
        self.folder = folder / f"chain-{count}"
        self.socket = self.folder / "nbd.sock"
        self.count = count

    def command(self) -> list[str]:
        return ["qemu-nbd", "--persistent", "--shared=4", "--cache=none", "--aio=native", "--format=qcow2",
                f"--socket={self.socket}", str(self.image(self.count))]  # fmt: skip

    def image(self, number: int) -> Path:
        return self.folder / f"{number}.qcow2"

    def make(self) -> None:
        """The images, each with 1 % of the blocks written; the first one in full."""
        self.folder.mkdir(parents=True)
        quiet = {"check": True, "stdout": subprocess.DEVNULL}
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(self.image(0)), str(self.size)], **quiet)
        subprocess.run(["qemu-io", "-f", "qcow2", "-c", f"write -P 1 0 {self.size}", str(self.image(0))], **quiet)
        for number in range(1, self.count + 1):
            behind = str(self.image(number - 1))
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", behind,
                            str(self.image(number))], **quiet)  # fmt: skip
            step = self.size // 100 // 65536
            writes = [f"write -P 2 {(number * 7919 + index * 104729) % (self.size // 65536) * 65536} 64k" for index in range(step)]
            command = ["qemu-io", "-f", "qcow2"]
            for write in writes:
                command += ["-c", write]
            subprocess.run([*command, str(self.image(number))], **quiet)

    def start(self) -> None:
        log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        log.close()
        deadline = time.monotonic() + 60
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{self.name} did not start:\n{self.log_tail()}")
            time.sleep(0.05)


def write_some(export: Export, percent: float) -> None:
    """Writes a share of the disk's blocks, at random."""
    blocks = max(1, int(export.size / 4096 * percent / 100))
    run_fio(["fio", "--name=some", "--output-format=json", "--thread", "--rw=randwrite", "--bs=4k", "--iodepth=16",
             f"--size={export.size}", f"--io_size={blocks * 4096}", "--norandommap", f"--randseed={time.monotonic_ns() % 2**31}",
             *export.fio_target(None)], 120)  # fmt: skip


def prepare(host: Host) -> dict[int, Export]:
    """The disks, written in full, with their snapshots."""
    disks = {}
    for count in COUNTS:
        host.ask("disk", "create", f"d{count}", str(host.disk_size), "--policy", "single")
        disks[count] = Export(host, f"d{count}")
        fill(disks[count])
    for count, export in disks.items():
        for number in range(count):
            host.soon("disk", "snapshot", "create", export.export, f"s{number}")
            write_some(export, 1.0)
    return disks


def order(systems: list, turn: int) -> list:
    """Begins with another one every second round; the round between goes back."""
    first = turn // 2 % len(systems)
    forward = systems[first:] + systems[:first]
    return forward[::-1] if turn % 2 else forward


def compare(systems: list, rounds: int, seconds: float) -> dict:
    """Medians of each case and system."""
    runs: dict = {}
    for turn in range(rounds):
        for case in CASES:
            for system in order(systems, turn):
                runs.setdefault((case.name, system.name), []).append(measure(system, case, seconds))
    return {key: median_of(found) for key, found in runs.items()}


def held(host: Host, export: Export, count: int) -> list[float]:
    """Writes under way while snapshots are taken: the longest that each took, in ms, as fio saw it."""
    command = ["fio", "--name=load", "--output-format=json", "--thread", "--rw=randwrite", "--bs=4k", "--iodepth=8",
               f"--size={export.size}", "--time_based", f"--runtime={count}", "--norandommap", *export.fio_target(None)]  # fmt: skip
    load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    time.sleep(0.5)
    for number in range(count - 1):
        host.soon("disk", "snapshot", "create", export.export, f"held{number}")
        time.sleep(0.7)
    out, _ = load.communicate(timeout=120)
    events = host.log_tail()
    told = [float(line.rsplit("waited for ", 1)[1].split(" ms")[0]) for line in events.splitlines() if "writes waited for" in line]
    job = json.loads(out[out.index("{") :])["jobs"][0]
    return [max(told[-count:]), job["write"]["lat_ns"]["max"] / 1e6, job["write"]["clat_ns"]["percentile"]["99.000000"] / 1e3]


class Unix(http.client.HTTPConnection):
    """A connection to the host's API: programs that are started for each request would take the processors of what is measured."""

    def __init__(self, path: Path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self.path))


def delete(host: Host, disk: str, names: list[str]) -> None:
    for name in names:
        connection = Unix(host.api)
        connection.request("DELETE", f"/api/v1/disks/{disk}/snapshots/{name}?confirm={name}")
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 300:
            raise Failed(f"snapshot {name} is not deleted: {answer.status} {text}")


def deleted(host: Host, export: Export, count: int, seconds: float) -> list[float]:
    """The 99th percentile of writes at a steady pace, in us: with nothing beside, and while so many snapshots are deleted. Both in turn, each
    several times, for a machine has moments of its own; the medians."""
    command = ["fio", "--name=steady", "--output-format=json", "--thread", "--rw=randwrite", "--bs=4k", "--iodepth=4", "--rate_iops=1500",
               f"--size={export.size}", "--time_based", f"--runtime={seconds / DELETE_TURNS}", "--norandommap", *export.fio_target(None)]  # fmt: skip
    alone, beside = [], []
    for turn in range(DELETE_TURNS):
        for found, names in [(alone, range(0)), (beside, range(turn * count // DELETE_TURNS, (turn + 1) * count // DELETE_TURNS))]:
            load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            delete(host, export.export, [f"s{number}" for number in names])
            out, _ = load.communicate(timeout=seconds + 120)
            job = json.loads(out[out.index("{") :])["jobs"][0]
            found.append(job["write"]["clat_ns"]["percentile"]["99.000000"] / 1e3)
    return [statistics.median(alone), statistics.median(beside)]


def clones(host: Host, of: Export, count: int) -> dict:
    """Time and space of clones."""
    host.soon("disk", "snapshot", "create", of.export, "golden")
    before = used(host)
    times = []
    for number in range(count):
        began = time.monotonic()
        host.ask("disk", "clone", f"{of.export}@golden", f"clone{number}")
        times.append((time.monotonic() - began) * 1000)
    return {"median_ms": statistics.median(times), "max_ms": max(times), "bytes": used(host) - before}


def used(host: Host) -> int:
    devices = host.ask("device", "list")
    return sum(device.get("used_bytes") or 0 for device in devices)


def table(found: dict, first: str) -> str:
    lines = ["| case | system | latency | p99 | processor time | to the first |", "|---|---|---|---|---|---|"]
    for (case, system), one in found.items():
        base = found[(case, first)]
        ratio = f"{one['latency_us'] / base['latency_us']:.2f} / {one['server_cpu_us'] / base['server_cpu_us']:.2f}"
        lines.append(f"| {case} | {system} | {one['latency_us']:.0f} us | {one['p99_us']:.0f} us | {one['server_cpu_us']:.1f} us | {ratio} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="perf/run snapshots", description=__doc__)
    parser.add_argument("--drystone", required=True, help="the program, built for release")
    parser.add_argument("--size", type=int, default=512, help="MiB of each disk [default: 512]")
    parser.add_argument("--rounds", type=int, default=4, help="an even number is fair [default: 4]")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--clones", type=int, default=100)
    parser.add_argument("--chain", type=int, default=32, help="images behind the qcow2 image; 0: no chain [default: 32]")
    options = parser.parse_args(arguments)
    size = options.size * MIB
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="drystone-perf-") as folder:
        host = Host(Path(folder), size, size * 14, options.drystone)
        host.start()
        chain = Chain(Path(folder), size, min(options.chain, CHAIN_MAX)) if options.chain else None
        try:
            disks = prepare(host)
            systems: list = list(disks.values())
            if chain:
                chain.make()
                chain.start()
                systems.append(chain)
            print(table(compare(systems, options.rounds, options.seconds), systems[0].name), flush=True)
            longest, seen, p99 = held(host, disks[1], 10)
            print(f"snapshots under load: writes were held {longest:.1f} ms at most, fio's longest write took {seen:.1f} ms, p99 {p99:.0f} us")
            alone, beside = deleted(host, disks[256], 128, 10 * options.seconds)
            print(f"128 of 256 snapshots deleted under load: p99 of writes {alone:.0f} us before, {beside:.0f} us meanwhile, ratio {beside / alone:.2f}", flush=True)
            made = clones(host, disks[0], options.clones)
            print(f"{options.clones} clones: {made['median_ms']:.0f} ms each ({made['max_ms']:.0f} at most), {made['bytes'] / MIB:.1f} MiB in all")
            clone = Export(host, "clone0")
            for name, export in [("the disk", disks[0]), ("a clone", clone)]:
                one = measure(export, CASES[0], options.seconds)
                many = measure(export, CASES[1], options.seconds)
                print(f"reads of what is shared, {name}: {one['latency_us']:.0f} us at depth 1; {many['server_cpu_us']:.1f} us of processor time at depth 32")
        finally:
            if chain and chain.process:
                end(chain.process)
            host.stop()
    return 0
