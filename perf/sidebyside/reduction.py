"""What compression saves and costs: `perf/run reduction`.

Three hosts in turn, each with a device in memory: blocks as they are, LZ4, and Zstandard. Each has a disk with a file system of this machine's programs and
texts, and one with the pages of a database. The first host tells beforehand what would be saved; then its disks are compressed, too, and rewritten.
"""

import argparse
import json
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

from .cases import Case
from .measure import figures, fio_command, run_fio, settle
from .snapshots import MIB, Export, Host
from .systems import end, process_cpu_seconds

GIB = 1 << 30
ALGORITHMS = ["off", "lz4", "zstd"]
CASES = [
    Case("4k randread qd1", "randread", 4096, 1),
    Case("4k randread qd32", "randread", 4096, 32),
    Case("1m read qd8", "read", MIB, 8),
    Case("4k randwrite qd1", "randwrite", 4096, 1),
    Case("4k randwrite qd32", "randwrite", 4096, 32),
]
#: What fio writes becomes half as large by LZ4.
FIO_DATA = ["--buffer_compress_percentage=60", "--buffer_compress_chunk=4096", "--refill_buffers"]
WORDS = "paid open late order box red blue small large of the and customer address street returned shipped note gift none".split()


def file_system(folder: Path, image: Path, size: int) -> None:
    """An ext4 image with files of this machine, as many as fill three quarters of it."""
    tree = folder / "tree"
    left = size * 3 // 4
    for top in ["/usr/bin", "/usr/share/doc", "/usr/lib", "/usr/share", "/usr/include"]:
        room = left // 3 if top != "/usr/include" else left
        for path in sorted(Path(top).rglob("*")):
            if room <= 0:
                break
            try:
                if path.is_symlink() or not path.is_file():
                    continue
                length = path.stat().st_size
                if length > room // 8:
                    continue  # One large program would be most of it.
                target = tree / path.relative_to("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
            except OSError:
                continue
            room, left = room - length, left - length
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", str(tree), str(image), f"{size // MIB}M"], check=True)
    shutil.rmtree(tree)


def database(image: Path, size: int) -> None:
    """A database of SQLite whose pages fill the size: orders with numbers, names, texts, and an index."""
    chance = random.Random(7)
    made = sqlite3.connect(image)
    made.execute("PRAGMA journal_mode=off")
    made.execute("PRAGMA synchronous=off")
    made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INT, at INT, amount REAL, state TEXT, token BLOB, note TEXT)")
    made.execute("CREATE INDEX by_customer ON orders (customer)")
    at = 1_700_000_000
    while image.stat().st_size < size * 9 // 10:
        rows = []
        for _ in range(20_000):
            at += chance.randrange(9)
            note = " ".join(chance.choice(WORDS) for _ in range(chance.randrange(2, 16)))
            row = (chance.randrange(500_000), at, chance.randrange(100_000) / 100, chance.choice(WORDS[:3]), chance.randbytes(16), note)
            rows.append(row)
        made.executemany("INSERT INTO orders (customer, at, amount, state, token, note) VALUES (?, ?, ?, ?, ?, ?)", rows)
        made.commit()
    made.close()
    with open(image, "rb+") as file:
        file.truncate(size)


def total(host: Host, name: str) -> float:
    """A metric of the host, over all of its labels."""
    text = subprocess.run(["curl", "-sf", "--unix-socket", str(host.api), "http://localhost/metrics"], capture_output=True, text=True, check=True).stdout
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(f"drystone_{name}{{"))


def restart(host: Host) -> None:
    """Stops the host, which moves all that is in its log to where it belongs, and starts it again."""
    end(host.process)
    host.socket.unlink(missing_ok=True)
    host.api.unlink(missing_ok=True)
    log = open(host.folder / "log", "ab")
    host.process = subprocess.Popen(host.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    log.close()
    deadline = time.monotonic() + 60
    while not (host.socket.exists() and host.api.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)


def copy(source: Path, export: Export) -> None:
    target = f"nbd+unix:///{export.export}?socket={export.host.socket}"
    subprocess.run(["nbdcopy", "--flush", str(source), target], check=True, timeout=600)


def cpu_of(host: Host) -> float:
    return process_cpu_seconds(host.process.pid)


def taken(host: Host, disk: str) -> dict:
    """What the blocks of a disk take: those that are compressed, and the others as they are."""
    shown = host.ask("disk", "show", disk)
    found = shown.get("compressed") or {"compressed_bytes": 0, "packed_bytes": 0, "ratio": None, "rewriting": 0}
    return {**found, "allocated": shown["allocated_bytes"]}


def device_bytes(host: Host) -> int:
    return sum(device.get("used_bytes") or 0 for device in host.ask("device", "list"))


def load(folder: Path, algorithm: str, sources: dict, program: str) -> tuple[Host, dict]:
    """A host with the disks, and what it cost to destage them."""
    size = max(source.stat().st_size for source in sources.values())
    host = Host(folder, size, size * (len(sources) + 1), program)
    host.name = algorithm
    host.folder = folder / algorithm
    host.socket, host.api = host.folder / "nbd.sock", host.folder / "api.sock"
    host.start()
    for name in sources:
        host.ask("disk", "create", name, str(size), "--policy", f"single,compression={algorithm}")
    if algorithm != "off":
        time.sleep(15)  # The disk group is converted, and the components are told.
    before = cpu_of(host)
    for name, source in sources.items():
        copy(source, Export(host, name))
    settle_all(host)
    cost = {"cpu": cpu_of(host) - before, "destaged": total(host, "destaged_bytes_total")}
    cost["compressed"], cost["packed"] = total(host, "compressed_bytes_total"), total(host, "packed_bytes_total")
    return host, cost


def settle_all(host: Host) -> None:
    settle(Export(host, "files"))


def show(host: Host, sources: dict) -> None:
    for name in sources:
        found = taken(host, name)
        ratio = f"{found['ratio']:.2f}" if found["ratio"] else "-"
        print(f"{host.name}: disk {name}: {found['compressed_bytes'] / MIB:.0f} MiB compressed take {found['packed_bytes'] / MIB:.0f} MiB ({ratio}:1); {found['allocated'] / MIB:.0f} MiB allocated", flush=True)
    print(f"{host.name}: the device has {device_bytes(host) / MIB:.0f} MiB in extents that are taken", flush=True)


def measured(host: Host, seconds: float, rounds: int) -> dict:
    found: dict = {}
    export = Export(host, "database")
    for case in CASES:
        runs = []
        for _ in range(rounds):
            before = export.cpu_seconds()
            result = run_fio(fio_command(export, case, seconds) + FIO_DATA, seconds + 120)
            if case.writes:
                settle(export)
            runs.append(figures(result, export.cpu_seconds() - before, 0))
        runs.sort(key=lambda run: run["latency_us"])
        found[case.name] = runs[len(runs) // 2]
    return found


def rewrite(host: Host, sources: dict) -> None:
    """Compresses the disks of the host that had them as they are, and waits until they are rewritten."""
    for name in sources:
        host.ask("disk", "set", name, "compression=lz4")
    time.sleep(15)
    before, began = cpu_of(host), time.monotonic()
    for name in sources:
        host.ask("disk", "rewrite", name)
    deadline = time.monotonic() + 600
    while any(taken(host, name)["rewriting"] for name in sources) and time.monotonic() < deadline:
        time.sleep(1)
    took, cpu = time.monotonic() - began, cpu_of(host) - before
    print(f"off, then lz4 and rewritten: {took:.0f} s, {cpu:.1f} s of processor time", flush=True)
    show(host, sources)


def table(found: dict) -> str:
    lines = ["| case | blocks | latency | p99 | processor time | to off |", "|---|---|---|---|---|---|"]
    for case in [case.name for case in CASES]:
        base = found["off"][case]
        for algorithm in ALGORITHMS:
            one = found[algorithm][case]
            ratio = f"{one['latency_us'] / base['latency_us']:.2f} / {one['server_cpu_us'] / max(base['server_cpu_us'], 0.01):.2f}"
            lines.append(f"| {case} | {algorithm} | {one['latency_us']:.0f} us | {one['p99_us']:.0f} us | {one['server_cpu_us']:.1f} us | {ratio} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="perf/run reduction", description=__doc__)
    parser.add_argument("--drystone", required=True, help="the program, built for release")
    parser.add_argument("--size", type=int, default=512, help="MiB of each disk [default: 512]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args(arguments)
    size = options.size * MIB
    with tempfile.TemporaryDirectory(prefix="drystone-perf-") as made, tempfile.TemporaryDirectory(dir="/dev/shm", prefix="drystone-perf-") as folder:
        sources = {"files": Path(made) / "files.img", "database": Path(made) / "database.img"}
        file_system(Path(made), sources["files"], size)
        database(sources["database"], size)
        found = {}
        for algorithm in ALGORITHMS:
            host, cost = load(Path(folder), algorithm, sources, options.drystone)
            try:
                print(f"{algorithm}: {cost['cpu']:.1f} s of processor time to take in and destage; {cost['destaged'] / GIB:.2f} GiB written to the device")
                if cost["packed"]:
                    print(f"{algorithm}: {cost['compressed'] / GIB:.2f} GiB of blocks were compressed or tried, and take {cost['packed'] / GIB:.2f} GiB ({cost['compressed'] / cost['packed']:.2f}:1)")
                restart(host)
                if algorithm == "off":
                    estimate = host.ask("cluster", "estimate", "--start", "--sample", "100%")
                    for disk in estimate["disks"]:
                        print(f"estimate for disk {disk['name']}: {json.dumps({codec: disk[codec] for codec in ['lz4', 'zstd']})}")
                show(host, sources)
                found[algorithm] = measured(host, options.seconds, options.rounds)
                if algorithm == "off":
                    rewrite(host, sources)
            finally:
                host.stop()
        print(table(found))
    return 0
