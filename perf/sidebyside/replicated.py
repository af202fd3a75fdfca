"""`perf/run replicated`: disks of 1, 2 and 3 copies, or one with parity beside a mirror, on a cluster of this machine, and Ceph RBD beside it.

Processor time is that of everything per I/O: all hosts, the directory, and fio.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from peers import ceph

from . import stages
from .cases import KIB, MIB, Case
from .cluster import HOSTS, Cluster, Copies, Parity
from .encrypted import Encrypted
from .main import machine
from .measure import fill, measure, median_of
from .systems import Failed

CASES = [
    Case("4k randwrite qd32", "randwrite", 4 * KIB, 32),
    Case("4k randread qd32", "randread", 4 * KIB, 32),
    Case("4k randwrite qd1", "randwrite", 4 * KIB, 1),
    Case("4k randread qd1", "randread", 4 * KIB, 1),
]
#: With `--parity`, too: writes of whole rows are what parity is good at.
SEQUENTIAL = [
    Case("1m write qd8", "write", MIB, 8),
    Case("1m read qd8", "read", MIB, 8),
]
#: Of what a medium must hold: the disks of 1, 2, 3 and 3 copies, and Ceph's three OSDs (with log and metadata, twice).
COPIES_OF_ALL = 9
#: With `--parity` the mirror of two copies and the rows of 2+1, and Ceph's two images of the same, with some room.
COPIES_WITH_PARITY = 10
#: And the disks of 1, 2 and 3 copies of a cluster whose hosts encrypt.
COPIES_ENCRYPTED = 6
#: Each host's log, and what its devices need beside.
HOST_OVERHEAD = 768 << 20


@dataclass(frozen=True)
class Budget:
    """The most processor time of everything per I/O, in microseconds (`docs/ARCHITECTURE.md`, budgets)."""

    case: str
    system: str
    bound: float


BUDGETS = [
    Budget("4k randwrite qd32", "drystone, 3 copies", 60),
    Budget("4k randwrite qd32", "drystone, 2 copies", 45),
    Budget("4k randwrite qd32", "drystone, RAID-5 2+1", 90),
    Budget("4k randread qd32", "drystone, 3 copies", 12),
    Budget("4k randread qd32", "drystone, 2 copies", 12),
    Budget("4k randread qd32", "drystone, 3 copies, read_locality=auto", 14),
    Budget("4k randread qd32", "drystone, 1 copy", 12),
]

#: Heading, figure, and how it is printed.
COLUMNS = [
    ("IOPS", "iops", "{:,.0f}"),
    ("mean us", "latency_us", "{:,.0f}"),
    ("p99 us", "p99_us", "{:,.0f}"),
    ("hosts us/IO", "server_cpu_us", "{:.1f}"),
    ("fio us/IO", "client_cpu_us", "{:.1f}"),
    ("all us/IO", "all_cpu_us", "{:.1f}"),
]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="perf/run replicated", description=__doc__)
    parser.add_argument("--drystone", metavar="PROGRAM", default="target/release/drystone")
    parser.add_argument("--ceph", choices=["auto", "yes", "no"], default="auto",
                        help="measure Ceph RBD too: if its programs are there (auto), or fail without them (yes)")  # fmt: skip
    parser.add_argument("--encrypted", action="store_true",
                        help="a second cluster beside it, with certificates: what it costs that hosts encrypt (needs etcd)")  # fmt: skip
    parser.add_argument("--copies", type=int, choices=[1, 2, 3], action="append", help="only these; may be repeated")
    parser.add_argument("--parity", action="store_true",
                        help="measure a disk with parity (RAID-5 2+1) beside a mirror of two copies, Ceph with an erasure-coded pool of 2+1 "
                             "beside a replicated one of two, and 1 MiB sequential cases, too")  # fmt: skip
    parser.add_argument("--only", metavar="TEXT", action="append", default=[],
                        help="only cases whose name contains TEXT; may be repeated")  # fmt: skip
    parser.add_argument("--seconds", type=float, default=8, help="length of one run (default 8)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each case and system (default 3)")
    parser.add_argument("--size", type=int, metavar="MIB", default=512, help="size of each disk (default 512)")
    parser.add_argument("--dir", metavar="DIR", default="/dev/shm", help="where all devices are (default /dev/shm)")
    parser.add_argument("--profile", action="store_true",
                        help="then run each case once more under Linux' perf, and print where the time goes by stage")  # fmt: skip
    parser.add_argument("--json", metavar="FILE", help="write every run and the medians there")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a budget is missed")
    options = parser.parse_args(arguments)
    options.size <<= 20
    options.copies = sorted(set(options.copies or ([2] if options.parity else [1, 2, 3])))
    cases = CASES + (SEQUENTIAL if options.parity else [])
    options.cases = [case for case in cases if not options.only or any(text in case.name for text in options.only)]
    if not options.cases:
        parser.error("no case's name contains that; there are: " + ", ".join(case.name for case in cases))
    return options


def check(options: argparse.Namespace) -> bool:
    """Whether Ceph takes part."""
    needed = {"fio": "fio"} | ({"perf": "linux-perf"} if options.profile else {})
    needed |= {"etcd": "etcd-server"} if options.encrypted else {}
    for program, package in needed.items():
        if shutil.which(program) is None:
            raise Failed(f"`{program}` is not installed (Debian: apt-get install {package})")
    if not os.access(options.drystone, os.X_OK):
        raise Failed(f"{options.drystone} is not there: build it with `./x build`, or name it with --drystone")
    needs = copies_needed(options) * 2 * options.size + HOSTS * HOST_OVERHEAD * (2 if options.encrypted else 1)
    free = shutil.disk_usage(options.dir).free
    if free < needs:
        raise Failed(f"{options.dir} has {free >> 20} MiB free; {needs >> 20} MiB are needed (--size is smaller)")
    missing = ceph.missing() if options.ceph != "no" else ["it"]
    if missing and options.ceph == "yes":
        raise Failed(f"{', '.join(missing)} is not installed (Debian: {ceph.HINT})")
    if missing and options.ceph == "auto":
        print(f"Ceph RBD is not measured: {', '.join(missing)} is not installed ({ceph.HINT})", file=sys.stderr)
    return not missing


def copies_needed(options: argparse.Namespace) -> int:
    """How many times the size of a disk the medium must hold, without logs and metadata."""
    copies = COPIES_WITH_PARITY + sum(options.copies) if options.parity else COPIES_OF_ALL
    return copies + (COPIES_ENCRYPTED if options.encrypted else 0)


def disks_of(options: argparse.Namespace, cluster: Cluster, note: str) -> list[Copies]:
    """The disks of a cluster that are measured."""
    disks = [Copies(cluster, copies, options.size, note=note) for copies in options.copies]
    disks += [Copies(cluster, 3, options.size, "auto")] if 3 in options.copies and not note else []
    return disks + ([Parity(cluster, options.size, note)] if options.parity else [])


def with_all(figures: dict) -> dict:
    return figures | {"all_cpu_us": figures["server_cpu_us"] + figures["client_cpu_us"]}


def clusters(options: argparse.Namespace, folder: Path) -> list[tuple[Cluster, str]]:
    """The clusters to be started, each with what its disks' names tell of it."""
    program = os.path.abspath(options.drystone)
    return [(Cluster(folder, program), "")] + ([(Encrypted(folder, program), "encrypted")] if options.encrypted else [])


def measure_all(options: argparse.Namespace, systems: list) -> tuple[dict, list, list]:
    """Medians by case and system, every single run, and profiles."""
    medians, runs, profiles = {}, [], []
    for case in options.cases:
        by_system = {system.name: [] for system in systems}
        for index in range(options.rounds):
            turn = index % len(systems)
            for system in systems[turn:] + systems[:turn]:
                found = with_all(measure(system, case, options.seconds))
                by_system[system.name].append(found)
                runs.append({"case": case.name, "system": system.name, **found})
                print(f"{case.name}: {system.name}: {found['iops']:,.0f} IOPS, all {found['all_cpu_us']:.1f} us/IO",
                      file=sys.stderr, flush=True)  # fmt: skip
        medians[case.name] = {name: median_of(found) for name, found in by_system.items()}
        if options.profile:
            for system in systems:
                if isinstance(system, Copies):
                    total = medians[case.name][system.name]["all_cpu_us"]
                    shares = stages.shares(system, case, options.seconds, system.cluster)
                    profiles.append({"case": case.name, "system": system.name, "all_cpu_us": total, "shares": shares})
    return medians, runs, profiles


def table(medians: dict) -> str:
    """`medians`: case name → system name → figures."""
    rows = [["case", "system", *(head for head, _, _ in COLUMNS)]]
    for case, by_system in medians.items():
        for index, (system, figures) in enumerate(by_system.items()):
            cells = [form.format(figures[key]) for _, key, form in COLUMNS]
            rows.append([case if index == 0 else "", system, *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join([row[0].ljust(widths[0]), row[1].ljust(widths[1])]
                  + [cell.rjust(width) for cell, width in zip(row[2:], widths[2:])]).rstrip()
        for row in rows
    ]  # fmt: skip
    return "\n".join(lines)


def verdicts(medians: dict) -> list[dict]:
    """Every budget whose case was measured."""
    found = []
    for budget in BUDGETS:
        figures = medians.get(budget.case, {}).get(budget.system)
        if figures is not None:
            reached = figures["all_cpu_us"]
            found.append({"budget": f"{budget.case}, {budget.system}: CPU of everything per I/O, us",
                          "bound": budget.bound, "reached": round(reached, 1), "met": reached <= budget.bound})  # fmt: skip
    return found


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    started = []
    try:
        with_ceph = check(options)
        folder = Path(tempfile.mkdtemp(prefix="perf-", dir=options.dir))
        try:
            systems = []
            for cluster, note in clusters(options, folder):
                started.append(cluster)
                cluster.start()
                systems += disks_of(options, cluster, note)
            if with_ceph:
                peer = ceph.Ceph(folder, options.size, 2 if options.parity else 3, options.parity)
                started.append(peer)
                peer.start()
                systems += peer.images()
            for system in systems:
                started.append(system)
                system.start()
                print(f"filling {system.name}", file=sys.stderr, flush=True)
                fill(system)
            medians, runs, profiles = measure_all(options, systems)
        finally:
            for system in reversed(started):
                system.stop()
            shutil.rmtree(folder, ignore_errors=True)
    except Failed as failure:
        print(f"perf: {failure}", file=sys.stderr)
        return 2
    about, found = machine(), verdicts(medians)
    print(f"{about['cpus']} x {about['cpu']}, Linux {about['kernel']}, {about['fio']}; {HOSTS} hosts on this machine")
    print(f"medians of {options.rounds} rounds of {options.seconds:g} s, disks of {options.size >> 20} MiB written in full\n")
    print(table(medians))
    for one in found:
        word = "pass" if one["met"] else "MISS"
        print(f"  {word}  {one['reached']:6.1f}  <= {one['bound']:g}  {one['budget']}")
    for profile in profiles:
        print(stages.table(profile))
    if options.json:
        document = {"machine": about, "seconds": options.seconds, "rounds": options.rounds, "size": options.size,
                    "medians": medians, "budgets": found, "profiles": profiles, "runs": runs}  # fmt: skip
        Path(options.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if options.strict and not all(one["met"] for one in found) else 0
