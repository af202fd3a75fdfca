"""Where processor time goes: samples of Linux' perf of all processes of a run, summed by stage."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .measure import fio_command
from .systems import Failed

#: Samples a second of each processor.
FREQUENCY = 1999
#: The rest after all patterns.
REST = "the program's other code"

#: Stage, and the symbols or libraries that belong to it: the first pattern that fits decides. Kernel symbols end in `[k]`.
STAGES = [
    ("kernel: TCP between hosts", r"(tcp|skb|inet_|ip_|__ip|netif|net_rx|loopback|dev_queue|dev_hard|__dev|sk_|sock_def|"
                                  r"napi|validate_xmit|nf_|__netif|eth_|simple_copy_to_iter|csum|process_backlog|"
                                  r"__local_bh_enable|page_frag|__alloc_skb|kfree_skb|mem_cgroup_sk).*\[k\]"),
    ("kernel: unix sockets (fio to host)", r"(unix_|sock_|scm_|maybe_add_creds|__check_object|import_iovec).*\[k\]"),
    ("kernel: files in memory", r"(shmem|generic_perform|generic_file|filemap|folio|pagecache|fault_in|iov_iter|"
                                r"xas_|xa_|vfs_|do_iter|file_|kiocb|rw_verify|balance_dirty|fget|inode_|"
                                r"__folio|lru_|zero_user|clear_page|truncate|fallocate).*\[k\]"),
    ("kernel: copying memory", r"(copy|rep_movs|memcpy|clear_user|_to_iter|from_iter).*\[k\]"),
    ("kernel: io_uring", r"(io_|__io_|iou_|req_).*\[k\]"),
    ("kernel: sleeping, waking, switching", r"(sched|schedule|wake|try_to|ttwu|futex|enqueue|dequeue|pick_|switch|update_|"
                                            r"_raw_spin|hrtimer|timer|tick_|idle|poll|ep_|set_next|select_task|reweight|"
                                            r"prepare_|finish_|psi_|cpu|rcu|resched|eventfd|clockevents|"
                                            r"native_|pvclock|ktime|read_tsc|sysvec|asm_sysvec|irq|do_softirq|"
                                            r"handle_softirqs|lapic|apic).*\[k\]"),
    ("kernel: entering and leaving", r"(entry_|syscall|do_syscall|__x64|x64_sys|__se_sys|exit_to|srso|retbleed|__put_user|"
                                     r"__get_user|fpregs|security_|audit).*\[k\]"),
    ("kernel: the rest", r".*\[k\]"),
    ("fio", r"^(fio|libnbd|libfio).*"),
    ("checksums", r"crc|checksum"),
    ("moving memory", r"mem(cpy|move|set|cmp)|__mem"),
    ("allocating memory", r"malloc|free|alloc|RawVec|drop_in_place|grow"),
    ("NBD", r"frontends|nbd"),
    ("wire format", r"wire::|<wire"),
    ("replication", r"replication"),
    ("disk group", r"diskgroup"),
    ("statistics", r"iostats"),
    ("node", r"node::"),
    ("the engine", r"drystone::engine|engine::|io_uring|slab"),
]  # fmt: skip
PATTERNS = [(stage, re.compile(pattern)) for stage, pattern in STAGES]


def stage_of(program: str, library: str, symbol: str, is_kernel: bool) -> str:
    """The stage of a sample."""
    if program.startswith("fio") and not is_kernel:
        return "fio"
    text = f"{symbol} [k]" if is_kernel else f"{symbol} {library}"
    return next((stage for stage, pattern in PATTERNS if pattern.search(text)), REST)


def parse(report: str) -> dict[str, float]:
    """Shares by stage of `perf report --sort comm,dso,symbol`, each line: percent, program, library, [k] or [.], symbol."""
    sums: dict[str, float] = {}
    for line in report.splitlines():
        found = re.match(r"\s*([\d.]+)%\s+(\S.*?)\s{2,}(\S+)\s+\[([k.])\]\s+(.*)$", line)
        if found is None:
            continue
        percent, program, library, kind, symbol = found.groups()
        stage = stage_of(program, library, symbol.strip(), kind == "k")
        sums[stage] = sums.get(stage, 0.0) + float(percent) / 100
    total = sum(sums.values())
    if total <= 0:
        raise Failed("perf has no samples")
    return {stage: share / total for stage, share in sorted(sums.items(), key=lambda one: -one[1])}


def shares(system, case, seconds: float, cluster) -> dict[str, float]:
    """Runs the case once more and samples the cluster's processes and fio."""
    folder = Path(tempfile.mkdtemp(prefix="profile-"))
    data = str(folder / "data")
    client = subprocess.Popen(fio_command(system, case, seconds), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        pids = ",".join(str(pid) for pid in [*cluster.processes.values(), client.pid])
        record = ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-p", pids, "-o", data,
                  "--", "sleep", str(max(1.0, seconds - 1))]  # fmt: skip
        done = subprocess.run(record, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"perf record failed: {done.stderr.strip()[-500:]}")
        client.wait(seconds + 60)
        report = ["perf", "report", "-q", "--stdio", "-i", data, "--sort", "comm,dso,symbol", "--percent-limit", "0"]
        done = subprocess.run(report, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"perf report failed: {done.stderr.strip()[-500:]}")
        return parse(done.stdout)
    finally:
        if client.poll() is None:
            client.kill()
            client.wait()
        shutil.rmtree(folder, ignore_errors=True)


def table(profile: dict) -> str:
    """Microseconds per I/O by stage."""
    lines = [f"\n{profile['case']}, {profile['system']}: {profile['all_cpu_us']:.1f} us of everything per I/O, by stage"]
    for stage, share in profile["shares"].items():
        lines.append(f"  {share * profile['all_cpu_us']:6.2f} us  {share:5.1%}  {stage}")
    return "\n".join(lines)
