"""The systems under test: how each is started on a folder, how clients reach it, and which process's time it costs."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Optional

#: Longest wait for a server to answer, in seconds: Drystone formats its device first.
START_WAIT = 60
#: Longest wait for a server to end once it was told to.
STOP_WAIT = 60


class Failed(Exception):
    """Something outside this program did not work; the text says what and how to find out why."""


def flush_file(path: Path) -> None:
    """Makes a file stable, so that its dirty pages do not slow down whoever is measured next."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def end(process: subprocess.Popen) -> None:
    """Tells a process to end, and sees to it."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class System:
    """Something that fio measures. Subclasses say how it is started, reached, and which processes' time it costs."""

    def fio_environment(self) -> Optional[dict]:
        """The environment that fio needs to reach it; its own if nothing is said."""
        return None

    def flush(self) -> None:
        """Makes stable what the last run has left in the page cache."""


class Server(System):
    """A server of one disk on a unix socket. Subclasses say how it is started."""

    name = ""

    def __init__(self, folder: Path, size: int):
        self.folder = folder / self.name
        self.size = size
        self.process: Optional[subprocess.Popen] = None
        self.socket = self.folder / "nbd.sock"
        self.export = ""

    def command(self) -> list[str]:
        raise NotImplementedError

    def ready(self) -> None:
        """What is to be done once its socket is there."""

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        deadline = time.monotonic() + START_WAIT
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{self.name} did not start:\n{self.log_tail()}")
            time.sleep(0.05)
        self.ready()

    def log_tail(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        if self.process is None:
            return
        end(self.process)
        self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)

    def fio_target(self, case) -> list[str]:
        """How fio reaches it."""
        return ["--ioengine=nbd", f"--uri=nbd+unix:///{self.export}?socket={self.socket}"]

    def cpu_seconds(self) -> float:
        """User and system time of all its threads so far; workers of io_uring are threads of their process."""
        if self.process is None or self.process.poll() is not None:
            raise Failed(f"{self.name} has ended:\n{self.log_tail()}")
        return process_cpu_seconds(self.process.pid)


def process_cpu_seconds(pid: int) -> float:
    """User and system time of a process and its threads, in seconds (proc(5), fields 14 and 15)."""
    text = Path(f"/proc/{pid}/stat").read_text()
    # The second field, the program's name, may hold spaces and brackets.
    fields = text.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Drystone(Server):
    """`drystone host` with one device (a file) for log and data, and one disk."""

    name = "drystone"
    DISK = "perf"

    def __init__(self, folder: Path, size: int, program: str):
        super().__init__(folder, size)
        self.program = program
        self.export = self.DISK
        self.api = self.folder / "api.sock"

    def command(self) -> list[str]:
        config = self.folder / "host.toml"
        # Room for the disk, the log (a tenth of the device) and the table.
        device_size = (self.size + self.size // 2 + (512 << 20)) >> 20 << 20
        config.write_text(
            f'data_dir = "{self.folder}"\n'
            f'[listen]\nnbd = ["unix:{self.socket}"]\nhttp = ["unix:{self.api}"]\n'
            f'[[group]]\nlog = "{self.folder}/device.img"\nfile_size = {device_size}\ncreate = "if-blank"\n'
        )
        return [self.program, "host", "--config", str(config)]

    def ready(self) -> None:
        deadline = time.monotonic() + START_WAIT
        while not self.api.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        arguments = ["disk", "create", self.DISK, str(self.size), "--policy", "single"]
        done = subprocess.run(
            [self.program, "--api", f"unix:{self.api}", *arguments], capture_output=True, text=True, timeout=START_WAIT
        )
        if done.returncode != 0:
            raise Failed(f"drystone disk create failed: {done.stderr.strip()}\n{self.log_tail()}")


class DrystoneBefore(Drystone):
    """Another release of it, to see what a change costs."""

    name = "before"


class NbdkitFile(Server):
    """nbdkit's file plugin: a thread per request, the page cache, writes not stable before a flush."""

    name = "nbdkit-file"

    def command(self) -> list[str]:
        image = self.folder / "image"
        with open(image, "wb") as file:
            file.truncate(self.size)
        return ["nbdkit", "-f", "-U", str(self.socket), "file", str(image)]

    def flush(self) -> None:
        flush_file(self.folder / "image")


class NbdkitMemory(Server):
    """nbdkit's memory plugin: no storage at all."""

    name = "nbdkit-memory"

    def command(self) -> list[str]:
        return ["nbdkit", "-f", "-U", str(self.socket), "memory", str(self.size)]


class Raw(System):
    """A file without a server: fio by io_uring and O_DIRECT."""

    name = "raw"

    def __init__(self, folder: Path, size: int):
        self.folder = folder / self.name
        self.size = size

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        with open(self.folder / "image", "wb") as file:
            file.truncate(self.size)

    def stop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def fio_target(self, case) -> list[str]:
        target = ["--ioengine=io_uring", "--direct=1", f"--filename={self.folder}/image"]
        return target + (["--sync=dsync"] if case is not None and case.raw_dsync else [])

    def cpu_seconds(self) -> float:
        return 0.0

    def flush(self) -> None:
        flush_file(self.folder / "image")
