"""The command: parses options, starts all systems on each medium, measures them in turn, prints and writes results."""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from . import report
from .cases import CASES
from .measure import fill, measure, median_of
from .systems import Drystone, DrystoneBefore, Failed, NbdkitFile, NbdkitMemory, Raw

SYSTEMS = ["drystone", "nbdkit-file", "nbdkit-memory", "raw"]
MEDIA = ["tmpfs", "disk"]
#: File, memory, raw and the devices of Drystone and of the release before (half as large again, and the log) at once.
IMAGES_AT_ONCE = 7


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="perf/run", description=__doc__)
    parser.add_argument("--drystone", metavar="PROGRAM", default="target/release/drystone")
    parser.add_argument("--before", metavar="PROGRAM",
                        help="measure another release, too, and show the ratios: what a change costs")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="one round of 2 s on 512 MiB: does it work at all?")
    parser.add_argument("--seconds", type=float, help="length of one run (default 8)")
    parser.add_argument("--rounds", type=int, help="runs of each case and system; medians are shown (default 3)")
    parser.add_argument("--size", type=int, metavar="MIB", help="size of the disk (default 2048)")
    parser.add_argument("--only", metavar="TEXT", action="append", default=[],
                        help="only cases whose name contains TEXT; may be repeated")  # fmt: skip
    parser.add_argument("--system", choices=SYSTEMS, action="append", help="only this system; may be repeated")
    parser.add_argument("--medium", choices=MEDIA, action="append", help="only this medium; may be repeated")
    parser.add_argument("--disk-dir", metavar="DIR", default="/var/tmp",
                        help="where the medium `disk` is: a folder of a file system with O_DIRECT")  # fmt: skip
    parser.add_argument("--tmpfs-dir", metavar="DIR", default="/dev/shm")
    parser.add_argument("--json", metavar="FILE", help="write every run and the medians there")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a budget is missed")
    options = parser.parse_args(arguments)
    options.seconds = options.seconds or (2 if options.quick else 8)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.size = (options.size or (512 if options.quick else 2048)) << 20
    options.system = options.system or SYSTEMS
    options.medium = options.medium or MEDIA
    options.cases = [case for case in CASES if not options.only or any(text in case.name for text in options.only)]
    if not options.cases:
        parser.error("no case's name contains that; there are: " + ", ".join(case.name for case in CASES))
    return options


def check_programs(options: argparse.Namespace) -> None:
    needed = ["fio"] + (["nbdkit"] if any(name.startswith("nbdkit") for name in options.system) else [])
    for program in needed:
        if shutil.which(program) is None:
            raise Failed(f"`{program}` is not installed (Debian: apt-get install fio nbdkit)")
    if "drystone" in options.system and not os.access(options.drystone, os.X_OK):
        raise Failed(f"{options.drystone} is not there: build it with `./x build`, or name it with --drystone")
    if options.before and not os.access(options.before, os.X_OK):
        raise Failed(f"{options.before} (--before) is not a program")


def make(options: argparse.Namespace, folder: Path) -> list:
    makers = {
        "drystone": lambda: Drystone(folder, options.size, os.path.abspath(options.drystone)),
        "nbdkit-file": lambda: NbdkitFile(folder, options.size),
        "nbdkit-memory": lambda: NbdkitMemory(folder, options.size),
        "raw": lambda: Raw(folder, options.size),
    }
    systems = [makers[name]() for name in SYSTEMS if name in options.system]
    if options.before:
        systems.insert(1, DrystoneBefore(folder, options.size, os.path.abspath(options.before)))
    return systems


def measure_medium(options: argparse.Namespace, medium: str, parent: str) -> tuple[dict, list]:
    """Medians by case and system, and every single run."""
    free = shutil.disk_usage(parent).free
    if free < IMAGES_AT_ONCE * options.size:
        raise Failed(f"{parent} has {free >> 20} MiB free; {IMAGES_AT_ONCE * options.size >> 20} MiB are needed")
    # Paths of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="perf-", dir=parent))
    systems = make(options, folder)
    started, medians, runs = [], {}, []
    try:
        for system in systems:
            started.append(system)
            system.start()
            print(f"{medium}: filling {system.name}", file=sys.stderr, flush=True)
            fill(system)
        for case in options.cases:
            by_system = {system.name: [] for system in systems}
            for round_index in range(options.rounds):
                # Each round begins with another system: none is always first or after the same neighbour.
                turn = round_index % len(systems)
                for system in systems[turn:] + systems[:turn]:
                    found = measure(system, case, options.seconds)
                    by_system[system.name].append(found)
                    runs.append({"medium": medium, "case": case.name, "system": system.name, **found})
                    print(f"{medium}: {case.name}: {system.name}: {found['iops']:,.0f} IOPS, "
                          f"server {found['server_cpu_us']:.2f} us/IO", file=sys.stderr, flush=True)  # fmt: skip
            medians[case.name] = {name: median_of(found) for name, found in by_system.items()}
    finally:
        for system in started:
            system.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return medians, runs


def machine() -> dict:
    def first_line(command: list[str]) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return (done.stdout or done.stderr).strip().splitlines()[0] if done.stdout or done.stderr else "?"

    models = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "kernel": platform.release(),
        "cpu": models[0] if models else platform.machine(),
        "cpus": os.cpu_count(),
        "fio": first_line(["fio", "--version"]),
        "nbdkit": first_line(["nbdkit", "--version"]) if shutil.which("nbdkit") else None,
    }


def main(arguments=None) -> int:
    options = parse(sys.argv[1:] if arguments is None else arguments)
    results, runs = {}, []
    try:
        check_programs(options)
        for medium in options.medium:
            parent = options.tmpfs_dir if medium == "tmpfs" else options.disk_dir
            results[medium], found = measure_medium(options, medium, parent)
            runs += found
    except Failed as failure:
        print(f"perf: {failure}", file=sys.stderr)
        return 2
    found = report.verdicts(results)
    about = machine()
    print(f"{about['cpus']} x {about['cpu']}, Linux {about['kernel']}, {about['fio']}, {about['nbdkit']}")
    print(f"medians of {options.rounds} rounds of {options.seconds:g} s, {options.size >> 20} MiB written in full")
    for medium, medians in results.items():
        print(report.table(medium, medians))
    print(report.budget_lines(found))
    if options.before and "drystone" in options.system:
        print(report.before_lines(runs, Drystone.name, DrystoneBefore.name))
    if options.json:
        document = {"machine": about, "seconds": options.seconds, "rounds": options.rounds, "size": options.size,
                    "medians": results, "budgets": found, "runs": runs}  # fmt: skip
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if options.strict and not all(one["met"] for one in found) else 0
