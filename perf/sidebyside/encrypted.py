"""A cluster with certificates, as users have one: what hosts say to each other is encrypted. Its directory is one etcd."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

from .cluster import HOSTS, Cluster
from .systems import START_WAIT, Failed, end

#: As `drystone demo` has them, so that the two differ in nothing else.
CONFIG = """\
name = "{name}"
data_dir = "d"
[listen]
nbd = ["unix:nbd.sock"]
http = ["unix:api.sock", "127.0.0.1:{api}"]
[cluster]
directory = "etcd"
peers = "127.0.0.1:{peers}"
[cluster.etcd]
endpoints = ["http://127.0.0.1:{etcd}"]
[memory]
buffers = "256MiB"
tables = "128MiB"
[[group]]
log = "log.img"
capacity = ["capacity.img"]
log_size = "512MiB"
file_size = "8GiB"
create = "if-blank"
"""
#: Two ports of each host, and two of etcd.
PORTS = 2 * HOSTS + 2


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens at now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Encrypted(Cluster):
    """Made by the commands of the guide; each process is started by this one."""

    def __init__(self, folder: Path, program: str):
        super().__init__(folder, program)
        self.folder = folder / "encrypted"
        self.names = [chr(ord("a") + index) for index in range(HOSTS)]
        self.children: dict[str, subprocess.Popen] = {}
        ports = free_ports(PORTS)
        self.etcd_ports = ports[:2]
        self.ports = {name: ports[2 + 2 * index : 4 + 2 * index] for index, name in enumerate(self.names)}

    def start(self) -> None:
        self.folder.mkdir(parents=True)
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd_ports)
        self.run("directory", ["etcd", "--data-dir", str(self.folder / "etcd"), "--name", "one",
                               "--listen-client-urls", client, "--advertise-client-urls", client,
                               "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                               "--initial-cluster", f"one={peer}"])  # fmt: skip
        for index, name in enumerate(self.names):
            self.write_config(name)
            if index == 0:
                self.soon("cluster", "init", "--config", self.config(name), "--name", "perf")
            else:
                self.soon("host", "join", "--config", self.config(name), self.said_by("host", "token").strip())
            self.run(name, [self.program, "host", "--config", self.config(name)])
            self.soon("host", "list")
        self.processes = {name: child.pid for name, child in self.children.items()}

    def config(self, name: str) -> str:
        return str(self.folder / "d" / name / "host.toml")

    def write_config(self, name: str) -> None:
        peers, api = self.ports[name]
        path = Path(self.config(name))
        path.parent.mkdir(parents=True)
        path.write_text(CONFIG.format(name=name, api=api, peers=peers, etcd=self.etcd_ports[0]))

    def run(self, name: str, command: list[str]) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            self.children[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def said_by(self, *arguments: str) -> str:
        api = f"unix:{self.folder}/d/a/d/api.sock"
        done = subprocess.run([self.program, "--api", api, *arguments], capture_output=True, text=True, timeout=START_WAIT)
        if done.returncode != 0:
            raise Failed(f"drystone {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout

    def soon(self, *arguments: str) -> str:
        """The same with patience: etcd or a host may be just starting."""
        deadline = time.monotonic() + START_WAIT
        while True:
            try:
                return self.said_by(*arguments)
            except Failed:
                if time.monotonic() > deadline or any(child.poll() is not None for child in self.children.values()):
                    raise
                time.sleep(0.1)

    def said(self) -> str:
        logs = (self.folder / f"{name}.log" for name in self.children)
        return "\n".join(log.read_text(errors="replace") for log in logs)

    def is_up(self) -> bool:
        return bool(self.children) and all(child.poll() is None for child in self.children.values())

    def stop(self) -> None:
        for child in reversed(self.children.values()):
            end(child)
        self.children = {}
        shutil.rmtree(self.folder, ignore_errors=True)
