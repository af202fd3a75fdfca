"""`perf/run lab`: the lab's generator beside fio: one job file, run by both in turn, on a file in memory.

A pair is one run of each, in alternating order; what counts is the ratio within each pair. Processor time is that of all
threads of a process (io_uring's workers are among them), less what its start alone takes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .main import machine
from .report import Interval
from .systems import Failed

ENGINES = ["io_uring", "libaio", "psync"]
DEPTHS = [1, 32]
DIRECTIONS = ["randread", "randwrite"]
#: How far apart the two may be in IOPS, and the most processor time per I/O, as shares of fio's.
IOPS_WITHIN = 0.05
CPU_AT_MOST = 1.0


@dataclass(frozen=True)
class Cell:
    engine: str
    depth: int
    direction: str

    @property
    def name(self) -> str:
        return f"{self.engine} {self.direction} qd{self.depth}"

    def job(self, target: Path, size: int, length: str) -> str:
        return (
            f"[job]\nfilename={target}\nsize={size}\nrw={self.direction}\nbs=4k\ndirect=1\nnorandommap\n"
            f"ioengine={self.engine}\niodepth={self.depth}\n{length}\n"
        )


@dataclass(frozen=True)
class Result:
    iops: float
    cpu_us: float


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="perf/run lab", description=__doc__)
    parser.add_argument("--drystone", metavar="PROGRAM", default="target/release/drystone")
    parser.add_argument("--pairs", type=int, default=12, help="runs of each (default 12)")
    parser.add_argument("--seconds", type=int, default=2, help="length of one run (default 2)")
    parser.add_argument("--size", type=int, metavar="MIB", default=1024, help="size of the file (default 1024)")
    parser.add_argument("--processor", type=int, metavar="N", help="keep both on this processor")
    parser.add_argument("--only", metavar="TEXT", action="append", default=[], help="only cases that contain TEXT")
    parser.add_argument("--tmpfs-dir", metavar="DIR", default="/dev/shm")
    parser.add_argument("--json", metavar="FILE", help="write every run there")
    return parser.parse_args(arguments)


def run(words: list[str], options: argparse.Namespace) -> tuple[str, float]:
    """What it says, and its processor time in seconds."""
    pinned = ["taskset", "-c", str(options.processor)] if options.processor is not None else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(pinned + words, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def by_fio(job: Path, target: Path, options: argparse.Namespace) -> tuple[float, int, float]:
    text, cpu = run(["fio", str(job), "--output-format=json"], options)
    told = json.loads(text[text.index("{") :])["jobs"][0]
    parts = [told["read"], told["write"]]
    return sum(part["iops"] for part in parts), sum(part["total_ios"] for part in parts), cpu


def by_lab(job: Path, target: Path, options: argparse.Namespace) -> tuple[float, int, float]:
    words = [options.drystone, "lab", "run", str(job), "--target", str(target), "--out", os.devnull, "--json"]
    text, cpu = run(words, options)
    stage = json.loads(text)["stages"][0]
    ios = sum(stage["groups"][0][kind]["ios"] for kind in ("read", "write"))
    return stage["iops"], ios, cpu


def measure(cell: Cell, folder: Path, target: Path, options: argparse.Namespace) -> dict[str, list[Result]]:
    job, start = folder / "job.fio", folder / "start.fio"
    size = options.size << 20
    job.write_text(cell.job(target, size, f"runtime={options.seconds}\ntime_based"))
    start.write_text(cell.job(target, size, "io_size=4k"))
    tools = {"fio": by_fio, "lab": by_lab}
    alone = {name: min(tool(start, target, options)[2] for _ in range(3)) for name, tool in tools.items()}
    results: dict[str, list[Result]] = {name: [] for name in tools}
    for pair in range(options.pairs):
        for name in list(tools) if pair % 2 == 0 else reversed(list(tools)):
            iops, ios, cpu = tools[name](job, target, options)
            results[name].append(Result(iops, max(cpu - alone[name], 0) * 1e6 / ios))
    return results


def show(cell: Cell, results: dict[str, list[Result]]) -> dict:
    pairs = list(zip(results["lab"], results["fio"], strict=True))
    iops = Interval([lab.iops / fio.iops for lab, fio in pairs])
    cpu = Interval([lab.cpu_us / fio.cpu_us for lab, fio in pairs])
    agrees = iops.low <= 1 + IOPS_WITHIN and iops.high >= 1 - IOPS_WITHIN
    cheap = cpu.low <= CPU_AT_MOST
    medians = {name: statistics.median(of.iops for of in all_of) for name, all_of in results.items()}
    print(
        f"{cell.name:26} {medians['fio']:>10,.0f} {medians['lab']:>10,.0f}  {iops}  {cpu}"
        f"{'' if agrees else '  IOPS differ'}{'' if cheap else '  costs more'}",
        flush=True,
    )
    runs = {name: [vars(of) for of in all_of] for name, all_of in results.items()}
    return {"case": cell.name, "iops_ratio": vars(iops), "cpu_ratio": vars(cpu), "runs": runs}


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    cells = [Cell(engine, depth, way) for engine in ENGINES for depth in DEPTHS for way in DIRECTIONS]
    cells = [cell for cell in cells if not options.only or any(text in cell.name for text in options.only)]
    try:
        with tempfile.TemporaryDirectory(prefix="perf-lab-", dir=options.tmpfs_dir) as name:
            folder = Path(name)
            target = folder / "target.img"
            with target.open("wb") as file:
                for _ in range(options.size):
                    file.write(os.urandom(1 << 20))
            print(f"{'':26} {'fio IOPS':>10} {'lab IOPS':>10}  ratio of IOPS        ratio of CPU per I/O")
            found = [show(cell, measure(cell, folder, target, options)) for cell in cells]
    except Failed as error:
        print(f"perf/run lab: {error}", file=sys.stderr)
        return 1
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": machine(), "cases": found}, indent=1))
    return 0
