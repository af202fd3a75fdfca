"""One run of fio against one system: figures and processor time."""

import json
import os
import statistics
import subprocess
import time
from typing import Optional

from .systems import Failed

#: Work that a run leaves behind (destaging) is counted too, up to this long after it.
SETTLE_SECONDS = 20
SETTLE_STEP = 0.25
#: A server that uses less than this share of a core has settled.
SETTLED_SHARE = 0.03


def fio_command(system, case, seconds: float) -> list[str]:
    command = [
        "fio", "--name=perf", "--output-format=json", "--group_reporting", "--thread",
        f"--rw={case.rw}", f"--bs={case.block}", f"--iodepth={case.depth}", f"--size={system.size}",
        "--time_based", f"--runtime={seconds}", "--norandommap", "--randrepeat=0",
        "--random_generator=tausworthe64",
    ]  # fmt: skip
    if case.mix is not None:
        command.append(f"--rwmixread={case.mix}")
    return command + system.fio_target(case)


def run_fio(command: list[str], timeout: float, environment: Optional[dict] = None) -> dict:
    """What fio reports."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        out, error = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Failed(f"fio did not end within {timeout:.0f} s: {' '.join(command)}") from None
    if process.returncode != 0:
        raise Failed(f"fio failed ({process.returncode}): {' '.join(command)}\n{error.strip()}\n{out[-1000:]}")
    # Messages may stand before the document.
    return json.loads(out[out.index("{") :])


def children_cpu_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def fill(system) -> None:
    """Writes all of the disk once, so that nothing is thin or cold."""
    command = [
        "fio", "--name=fill", "--output-format=json", "--thread", "--rw=write", "--bs=1M", "--iodepth=8",
        f"--size={system.size}", "--end_fsync=0", *system.fio_target(None),
    ]  # fmt: skip
    run_fio(command, 600, system.fio_environment())
    settle(system)
    system.flush()


def settle(system) -> None:
    """Waits until the server has no more work of its own."""
    deadline = time.monotonic() + SETTLE_SECONDS
    quiet = 0
    before = system.cpu_seconds()
    while quiet < 2 and time.monotonic() < deadline:
        time.sleep(SETTLE_STEP)
        now = system.cpu_seconds()
        quiet = quiet + 1 if now - before <= SETTLED_SHARE * SETTLE_STEP else 0
        before = now


def measure(system, case, seconds: float) -> dict:
    """One run, with the work that it leaves behind."""
    server_before, client_before = system.cpu_seconds(), children_cpu_seconds()
    result = run_fio(fio_command(system, case, seconds), seconds + 120, system.fio_environment())
    client = children_cpu_seconds() - client_before
    if case.writes:
        settle(system)
    server = system.cpu_seconds() - server_before
    system.flush()
    return figures(result, server, client)


def figures(result: dict, server: float, client: float) -> dict:
    """What is kept of one run. Latencies of reads and writes are weighed by their numbers; the p99 is the worse one."""
    job = result["jobs"][0]
    if job.get("error"):
        raise Failed(f"fio reports error {job['error']}")
    sides = [job[side] for side in ("read", "write") if job[side]["total_ios"] > 0]
    ios = sum(side["total_ios"] for side in sides)
    if ios == 0:
        raise Failed("fio did no I/O")
    return {
        "iops": sum(side["iops"] for side in sides),
        "bytes_per_second": sum(side["bw_bytes"] for side in sides),
        "latency_us": sum(side["lat_ns"]["mean"] * side["total_ios"] for side in sides) / ios / 1000,
        "p99_us": max(side["clat_ns"]["percentile"]["99.000000"] for side in sides) / 1000,
        "max_us": max(side["lat_ns"]["max"] for side in sides) / 1000,
        "server_cpu_us": server / ios * 1e6,
        "client_cpu_us": client / ios * 1e6,
    }


def median_of(runs: list[dict]) -> dict:
    """The median of each figure by itself."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}
