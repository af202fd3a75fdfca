"""What is measured, and what must come out (the budgets of `docs/ARCHITECTURE.md` and of the data path)."""

from dataclasses import dataclass
from typing import Callable, Optional


@dataclass(frozen=True)
class Case:
    """One pattern of I/O."""

    name: str
    rw: str
    block: int
    depth: int
    #: Share of reads in per cent, for a mix.
    mix: Optional[int] = None
    #: Whether the raw device must make each write stable before the next, as Drystone does.
    raw_dsync: bool = False

    @property
    def writes(self) -> bool:
        return "write" in self.rw or self.rw == "randrw"


KIB = 1024
MIB = 1024 * KIB

CASES = [
    Case("4k randread qd1", "randread", 4 * KIB, 1),
    Case("4k randread qd32", "randread", 4 * KIB, 32),
    Case("4k randwrite qd1", "randwrite", 4 * KIB, 1, raw_dsync=True),
    Case("4k randwrite qd32", "randwrite", 4 * KIB, 32),
    Case("4k 70/30 qd1", "randrw", 4 * KIB, 1, mix=70),
    Case("4k 70/30 qd32", "randrw", 4 * KIB, 32, mix=70),
    Case("1m read qd8", "read", MIB, 8),
    Case("1m write qd8", "write", MIB, 8),
]

#: Figures of one system in one case, medians over the rounds.
Figures = dict


@dataclass(frozen=True)
class Budget:
    """A ratio of Drystone to another system, and its bound."""

    medium: str
    case: str
    what: str
    against: str
    figure: Callable[[Figures], float]
    bound: float
    #: Whether the ratio may be at most (else: must be at least) the bound.
    at_most: bool

    def verdict(self, own: Optional[Figures], other: Optional[Figures]) -> Optional[tuple[float, bool]]:
        """Ratio and whether it is met; nothing when one of the two was not measured."""
        if own is None or other is None or not self.figure(other):
            return None
        ratio = self.figure(own) / self.figure(other)
        return ratio, (ratio <= self.bound if self.at_most else ratio >= self.bound)


def server_cpu(figures: Figures) -> float:
    return figures["server_cpu_us"]


def latency(figures: Figures) -> float:
    return figures["latency_us"]


def bandwidth(figures: Figures) -> float:
    return figures["bytes_per_second"]


BUDGETS = [
    Budget("tmpfs", "4k randread qd32", "server CPU per I/O", "nbdkit-file", server_cpu, 0.8, True),
    Budget("tmpfs", "4k randwrite qd32", "server CPU per I/O", "nbdkit-file", server_cpu, 1.5, True),
    Budget("disk", "4k randwrite qd1", "mean latency", "raw", latency, 1.3, True),
    Budget("disk", "1m read qd8", "bandwidth", "raw", bandwidth, 0.8, False),
    Budget("disk", "1m write qd8", "bandwidth", "raw", bandwidth, 0.45, False),
]
