"""Ceph RBD on this machine by Debian's packages: a monitor, a manager and three OSDs on files, all on loopback.

Without authentication, the image's cache off, a replicated pool spread over OSDs (all are on one host here), and, for rows with
parity, an erasure-coded pool of 2+1 that holds the data of an image. What is left to defaults is Ceph's own. Nothing outside its
folder is touched, except that Ceph makes `/var/run/ceph`.
"""

import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Optional

from sidebyside.systems import START_WAIT, STOP_WAIT, Failed, System, process_cpu_seconds

#: Programs that must be there, and how they come.
PROGRAMS = ["ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rbd", "monmaptool"]
HINT = "apt-get install --no-install-recommends ceph-mon ceph-mgr ceph-osd ceph-common"
OSDS = 3
PLACEMENT_GROUPS = 32
#: Of the erasure-coded pool: as `RAID-5 2+1`.
DATA, PARITY = 2, 1
#: Of the cluster's own socket on loopback.
MONITOR_PORT = 16789
#: The pool of images, and the one that holds the data of an image with parity.
POOL = "rbd"
ROWS = "rows"


def missing() -> list[str]:
    """Programs that are not installed."""
    return [program for program in PROGRAMS if shutil.which(program) is None]


class Ceph:
    """A Ceph cluster with one replicated pool, and an erasure-coded one if `with_parity`. Its images are the systems that are measured."""

    def __init__(self, folder: Path, size: int, copies: int, with_parity: bool = False):
        self.folder = folder / "ceph"
        self.size = size
        self.copies = copies
        self.with_parity = with_parity
        self.config = self.folder / "ceph.conf"
        self.processes: list[subprocess.Popen] = []
        self.environment = os.environ | {"CEPH_CONF": str(self.config)}

    def images(self) -> list["Image"]:
        return [Image(self)] + ([Image(self, ROWS)] if self.with_parity else [])

    def write_config(self) -> str:
        fsid = str(uuid.uuid4())
        self.config.write_text(
            f"[global]\nfsid = {fsid}\nmon_host = v1:127.0.0.1:{MONITOR_PORT}\n"
            "public_network = 127.0.0.0/8\nms_bind_ipv6 = false\nms_type = async+posix\n"
            "auth_cluster_required = none\nauth_service_required = none\nauth_client_required = none\n"
            f"osd_pool_default_size = {self.copies}\nosd_pool_default_min_size = {min(self.copies, 2)}\nosd_crush_chooseleaf_type = 0\n"
            "osd_pool_default_pg_autoscale_mode = off\nmon_allow_pool_delete = true\n"
            f"run_dir = {self.folder}/run\nadmin_socket = {self.folder}/run/$name.asok\n"
            f"log_file = {self.folder}/$name.log\nmon_cluster_log_file = {self.folder}/cluster.log\n"
            f"mon_data = {self.folder}/mon\nmgr_data = {self.folder}/mgr\nosd_data = {self.folder}/osd-$id\n"
            f"crash_dir = {self.folder}\nmon_data_avail_crit = 1\nmon_data_avail_warn = 1\n"
            f"bluestore_block_size = {(4 if self.with_parity else 2) * self.size + (2 << 30)}\nosd_memory_target = 1073741824\n"
            "[client]\nrbd_cache = false\n"
        )
        return fsid

    def tool(self, *command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, timeout=START_WAIT * 2, env=self.environment)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()[-1500:]}")
        return done.stdout

    def daemon(self, *command: str) -> None:
        log = open(self.folder / "daemons.log", "ab")
        self.processes.append(
            subprocess.Popen(
                [*command, "-f", "-c", str(self.config)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=self.environment,
            )
        )  # fmt: skip
        log.close()

    def start(self) -> None:
        (self.folder / "run").mkdir(parents=True)
        for name in ["mon", "mgr"]:
            (self.folder / name).mkdir()
        fsid, conf, monmap = self.write_config(), str(self.config), str(self.folder / "monmap")
        self.tool("monmaptool", "--create", "--addv", "a", f"[v1:127.0.0.1:{MONITOR_PORT}]", "--fsid", fsid, monmap)
        self.tool("ceph-mon", "--mkfs", "-i", "a", "--monmap", monmap, "-c", conf)
        self.daemon("ceph-mon", "-i", "a")
        self.ceph("status")
        self.daemon("ceph-mgr", "-i", "x")
        for number in range(OSDS):
            (self.folder / f"osd-{number}").mkdir()
            osd = str(uuid.uuid4())
            self.ceph("osd", "new", osd, str(number))
            self.tool("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", osd, "-c", conf)
            self.daemon("ceph-osd", "-i", str(number))
        self.wait_until(f"{OSDS} up", "osd", "stat")
        self.ceph("osd", "pool", "create", POOL, *[str(PLACEMENT_GROUPS)] * 2)
        self.rbd("pool", "init", POOL)
        groups = PLACEMENT_GROUPS + 1  # Those of the manager's own pool are among them.
        if self.with_parity:
            self.make_parity_pool()
            groups += PLACEMENT_GROUPS
        self.wait_until(rf"^{groups} pgs: {groups} active\+clean;", "pg", "stat")

    def make_parity_pool(self) -> None:
        """An image's header cannot stand in an erasure-coded pool; its data can, once parts of objects may be overwritten there."""
        profile = [f"k={DATA}", f"m={PARITY}", "crush-failure-domain=osd"]
        self.ceph("osd", "erasure-code-profile", "set", ROWS, *profile)
        self.ceph("osd", "pool", "create", ROWS, *[str(PLACEMENT_GROUPS)] * 2, "erasure", ROWS)
        self.ceph("osd", "pool", "set", ROWS, "allow_ec_overwrites", "true")
        self.ceph("osd", "pool", "application", "enable", ROWS, "rbd")

    def rbd(self, *arguments: str) -> str:
        return self.tool("rbd", "-c", str(self.config), *arguments)

    def ceph(self, *arguments: str) -> str:
        return self.tool("ceph", "-c", str(self.config), "--connect-timeout", str(START_WAIT), *arguments)

    def wait_until(self, pattern: str, *arguments: str) -> None:
        """Asks until the pattern fits the answer. The monitor refuses commands while it changes its map."""
        deadline = time.monotonic() + START_WAIT
        answer = ""
        while re.search(pattern, answer) is None:
            if time.monotonic() > deadline:
                raise Failed(f"Ceph: nothing like `{pattern}` in the answer of `ceph {' '.join(arguments)}`: {answer.strip()}")
            time.sleep(0.5)
            try:
                answer = self.ceph(*arguments)
            except Failed as failure:
                answer = str(failure)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(STOP_WAIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def cpu_seconds(self) -> float:
        ended = [process.args[0] for process in self.processes if process.poll() is not None]
        if ended:
            log = (self.folder / "daemons.log").read_text(errors="replace")[-1500:]
            raise Failed(f"{', '.join(ended)} has ended:\n{log}")
        return sum(process_cpu_seconds(process.pid) for process in self.processes)


class Image(System):
    """An image of a Ceph cluster, of copies or with its data in the erasure-coded pool. The cost is that of the whole cluster."""

    def __init__(self, cluster: Ceph, data_pool: Optional[str] = None):
        self.cluster = cluster
        self.size = cluster.size
        self.data_pool = data_pool
        self.image = data_pool or "copies"
        kind = f"EC {DATA}+{PARITY}" if data_pool else f"{cluster.copies} copies"
        self.name = f"ceph rbd, {kind}"

    def start(self) -> None:
        data_pool = ["--data-pool", self.data_pool] if self.data_pool else []
        self.cluster.rbd("create", self.image, "--size", f"{self.size >> 20}M", *data_pool)

    def stop(self) -> None:
        """The cluster goes as a whole."""

    def fio_target(self, case) -> list[str]:
        return ["--ioengine=rbd", "--clientname=admin", f"--pool={POOL}", f"--rbdname={self.image}"]

    def fio_environment(self) -> dict:
        return self.cluster.environment

    def cpu_seconds(self) -> float:
        return self.cluster.cpu_seconds()
