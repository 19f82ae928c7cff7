"""From rows to points, ratios, means and bounds: everything that a report says, as numbers."""

import dataclasses
import math

from . import peers
from .network import bound_us
from .units import human_bytes


# The transports of GCCL's points, and the peer that measures each. "mem": over shared memory,
# buffers in GCCL_Mem_alloc's memory.
TRANSPORTS = {"shm": "gccl", "mem": "gccl-mem", "tcp": "gccl-tcp"}


def headline(points):
    """Those that count for the goals: with buffers in ordinary memory, as programs have them."""
    return [p for p in points if p.transport != "mem"]


@dataclasses.dataclass
class Point:
    transport: str
    collective: str
    ranks: int
    bytes: int
    times_us: dict  # of every peer, GCCL's other transport included
    ours_us: float | None = None
    best: str = ""  # the fastest peer that this point is compared with
    best_us: float | None = None

    @property
    def ratio(self):
        """The best peer's time over GCCL's: above 1 where GCCL is faster. None where either is missing."""
        return self.best_us / self.ours_us if self.ours_us and self.best_us else None

    def ratio_to(self, names):
        """The same against the best of `names`."""
        found = [self.times_us[n] for n in names if n in self.times_us]
        return min(found) / self.ours_us if found and self.ours_us else None


def points_of(data):
    """In the order of measuring, one transport after the other."""
    table = {}
    for row in data["rows"]:
        table.setdefault((row["ranks"], row["collective"], row["bytes"]), {})[row["peer"]] = max(row["time_us"], 1e-3)
    found = []
    for transport, ours in TRANSPORTS.items():
        rivals = [p.name for p in peers.PEERS if not p.ours and (p.tcp or transport != "tcp")]
        if not any(row["peer"] == ours for row in data["rows"]):
            continue
        for (ranks, collective, size), times in table.items():
            against = {n: times[n] for n in rivals if n in times}
            if size < peers.BY_NAME[ours].bytes_min:
                continue
            best = min(against, key=against.get, default="")
            found.append(Point(transport, collective, ranks, size, times, times.get(ours), best, against.get(best)))
    return found


def geomean(ratios):
    ratios = [r for r in ratios if r]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def means(points):
    """[(name, mean, number of points, goal)], the goals those of the project."""
    gloo = [p.name for p in peers.PEERS if p.gloo]
    shm, mem, tcp = ([p for p in points if p.transport == t] for t in TRANSPORTS)
    groups = [
        ("against the best peer at each point", [p.ratio for p in headline(points)], 1.3),
        ("  over shared memory", [p.ratio for p in shm], None),
        ("  over TCP", [p.ratio for p in tcp], None),
        ("against Open MPI as shipped, shared memory", [p.ratio_to(["openmpi"]) for p in shm], 1.8),
        ("over TCP against the better of Open MPI and Gloo", [p.ratio_to(["openmpi-tcp", *gloo]) for p in tcp], 1.5),
    ]
    same = {(p.collective, p.ranks, p.bytes) for p in mem}
    groups += [
        ("the points of GCCL_Mem_alloc's memory, against the best peer", [p.ratio for p in mem], None),
        (
            "  the same points in ordinary memory",
            [p.ratio for p in shm if (p.collective, p.ranks, p.bytes) in same],
            None,
        ),
        ("the points of GCCL_Mem_alloc's memory, against Open MPI", [p.ratio_to(["openmpi"]) for p in mem], None),
    ]
    for transport in ("shm", "tcp"):
        for collective in dict.fromkeys(p.collective for p in points if p.transport == transport):
            groups.append(
                (
                    f"{collective}, {transport}, against the best peer",
                    [p.ratio for p in points if (p.transport, p.collective) == (transport, collective)],
                    None,
                )
            )
    return [(name, geomean(ratios), sum(1 for r in ratios if r), goal) for name, ratios, goal in groups if any(ratios)]


def worst(points, number):
    return sorted((p for p in headline(points) if p.ratio), key=lambda p: p.ratio)[:number]


@dataclasses.dataclass
class MemoryBound:
    """Two ranks' all-reduce of `bytes` against what memory lets pass. Times in microseconds, rates in GB/s."""

    bytes: int
    rates: dict  # (kernel, streamed) -> GB/s
    streamed_us: float  # 4 S at the best rate with streaming stores
    ordinary_us: float  # 6 S at the best rate with ordinary stores, which read each line before they write it
    kernel_us: float  # the least an all-reduce must do, as one loop in one process
    ours_us: float | None
    mem_us: float | None  # in GCCL_Mem_alloc's memory
    best: str
    best_us: float | None


def memory_bounds(data, points):
    found = []
    for size in sorted({m["bytes"] for m in data["machine"]["memory"]}):
        figures = {(m["kernel"], m["streamed"]): m for m in data["machine"]["memory"] if m["bytes"] == size}
        rates = {key: m["traffic_bytes"] / m["time_us"] / 1e3 for key, m in figures.items()}
        streamed = max(rate for key, rate in rates.items() if key[1])
        ordinary = max(rate for key, rate in rates.items() if not key[1])
        kernel = min(figures["allreduce", True]["time_us"], figures["allreduce", False]["time_us"])
        point, in_mem = (
            next((p for p in points if (p.transport, p.collective, p.ranks, p.bytes) == (t, "allreduce", 2, size)), None)
            for t in ("shm", "mem")
        )
        found.append(
            MemoryBound(
                size,
                rates,
                4 * size / streamed / 1e3,
                6 * size / ordinary / 1e3,
                kernel,
                point and point.ours_us,
                in_mem and in_mem.ours_us,
                point.best if point else "",
                point and point.best_us,
            )
        )
    return found


def round_trip_multiples(data, points):
    """[(collective, GCCL's lowest median in us, that over the run's lowest round trip, paired multiples by round)]."""
    least = data["machine"]["round_trip_ns_min"]
    found = []
    for collective in ("allreduce", "barrier"):
        point = next(
            (p for p in points if (p.transport, p.collective, p.ranks) == ("shm", collective, 2) and p.bytes <= 8), None
        )
        if not point or not point.ours_us or not least:
            continue
        paired = [
            p["time_us"] * 2e3 / (p["round_trip_ns_before"] + p["round_trip_ns_after"])
            for p in data["paired"]
            if p["collective"] == collective
        ]
        found.append((collective, point.ours_us, point.ours_us * 1e3 / least, paired))
    return found


def stalls(data):
    """[(peer, ranks, stalls, samples, longest in us)] where there are more ranks than cores, over points below 1 ms."""
    found = {}
    for row in data["rows"]:
        if row["ranks"] > data["machine"]["cores"] and row["time_us"] < 1000 and "stalls" in row:
            count, samples, longest = found.get((row["peer"], row["ranks"]), (0, 0, 0))
            found[row["peer"], row["ranks"]] = (
                count + row["stalls"],
                samples + row["samples"],
                max(longest, row["time_us_max"]),
            )
    return [(*key, *figures) for key, figures in found.items()]


def network_bounds_us(data, point):
    """See network.bound_us."""
    net = data["network"]
    return bound_us(point.collective, point.bytes, point.ranks, net["mbit"], net["delay_us"])


def last_line(points):
    """geomean_vs_best=X worst=Y (where)"""
    mean, low = geomean(p.ratio for p in headline(points)), worst(points, 1)
    if not low:
        return "geomean_vs_best=nan worst=nan (no point has both GCCL and a peer)"
    return f"geomean_vs_best={mean:.3f} worst={low[0].ratio:.3f} ({where(low[0])})"


def where(point):
    size = "" if point.collective == "barrier" else f" {human_bytes(point.bytes)}"
    return f"{point.transport} {point.collective}{size}, {point.ranks} ranks, {point.best}"
