"""The order of measuring: rank counts, then rounds, then points, then peers; everything up at once and waiting."""

import os
import sys
import time

from . import peers
from .machine import Machine, provenance, wait_until_quiet
from .network import Network
from .session import Failed, Session
from .settings import points
from .units import SCHEMA, bus_factor, human_bytes, moved_bytes

GIVE_UP_AFTER = 3  # failures of one peer with one rank count
HOPELESS = 10  # so many times the best one's time in the rounds before: not measured again at that point


def progress(text):
    """One line on standard error; on a terminal it overwrites itself."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def say(text):
    progress("")
    print(text, file=sys.stderr, flush=True)


class Field:
    """The sessions of one rank count. A peer that fails is started anew, a few times."""

    def __init__(self, s, ranks, network, out):
        self._s, self._ranks, self._network, self._out = s, ranks, network, out
        self._sessions, self._failures = {}, {}

    def __enter__(self):
        for peer in self._s.peers:
            reason = peers.absent(peer, self._ranks, self._s.build_dir)
            if reason:
                self._out.skip(peer, self._ranks, reason)
            else:
                self._start(peer)
        return self

    def _start(self, peer):
        progress(f"starting {peer.name}, {self._ranks} ranks")
        try:
            session = Session(peer, self._ranks, self._s.build_dir, self._network)
        except Failed as failure:
            self._failures[peer.name] = GIVE_UP_AFTER
            self._out.skip(peer, self._ranks, f"does not start: {failure}")
        else:
            self._sessions[peer.name] = session
            self._out.clock_us = max(self._out.clock_us, session.clock_us)

    def measure(self, peer, point):
        """-> the median of this round, or None."""
        if peer.name not in self._sessions or point[0] not in peer.collectives or self._hopeless(peer, point):
            return None
        try:
            sample = self._sessions[peer.name].measure(point, self._s)
            self._out.add(peer, self._ranks, point, sample)
            return sample["time_us"]
        except Failed as failure:
            self._sessions.pop(peer.name).close()
            self._out.fail(peer, self._ranks, point, str(failure))
            self._failures[peer.name] = self._failures.get(peer.name, 0) + 1
            if self._failures[peer.name] < GIVE_UP_AFTER:
                self._start(peer)
            return None

    def _hopeless(self, peer, point):
        """Whether the peer was so far behind the others of its transport that another round cannot matter."""
        times = {
            p.name: self._out.time_us(p, self._ranks, point) for p in self._s.peers if p.tcp == peer.tcp and not p.ours
        }
        own, known = times.get(peer.name), [t for t in times.values() if t]
        return bool(own) and own > HOPELESS * min(known)

    def __exit__(self, *error):
        for name, session in self._sessions.items():
            status = session.close(orderly=error[0] is None)
            if status and error[0] is None:
                self._out.fail(peers.BY_NAME[name], self._ranks, None, f"ended with status {status}")
        self._sessions = {}


class Results:
    """Rows by (peer, collective, ranks, bytes), and what went wrong."""

    def __init__(self):
        self.rows, self.problems, self.skipped = {}, [], {}
        self.clock_us = 0.0
        self.paired = []  # 8-byte points between round trips of a cache line measured just before and just after

    def time_us(self, peer, ranks, point):
        row = self.rows.get((peer.name, point[0], ranks, point[1]))
        return row["time_us"] if row else None

    def add(self, peer, ranks, point, sample):
        collective, size = point
        if sample["wrong"]:
            self._problem(peer, ranks, point, f"WRONG RESULT: {sample['wrong']} floats")
            return
        key = (peer.name, collective, ranks, size)
        row = self.rows.get(
            key,
            {
                "rounds": 0,
                "samples": 0,
                "stalls": 0,
                "time_us": float("inf"),
                "time_us_min": float("inf"),
                "time_us_max": 0,
            },
        )
        moved = moved_bytes(collective, size, ranks)
        time_us = min(row["time_us"], sample["time_us"])
        algbw = moved / time_us / 1e3 if time_us > 0 else 0
        self.rows[key] = {
            "peer": peer.name,
            "collective": collective,
            "ranks": ranks,
            "bytes": size,
            "time_us": round(time_us, 4),
            "time_us_min": min(row["time_us_min"], sample["time_us_min"]),
            "time_us_max": max(row["time_us_max"], sample["time_us_max"]),
            "stalls": row["stalls"] + sample["stalls"],
            "algbw_GBps": round(algbw, 4),
            "busbw_GBps": round(algbw * bus_factor(collective, ranks), 4),
            "samples": row["samples"] + sample["samples"],
            "rounds": row["rounds"] + 1,
        }

    def skip(self, peer, ranks, reason):
        say(f"bench/compare: {peer.name}, {ranks} ranks: skipped: {reason}")
        self.skipped[f"{peer.name}, {ranks} ranks"] = reason

    def fail(self, peer, ranks, point, reason):
        self._problem(peer, ranks, point, f"FAILED: {reason}")

    def _problem(self, peer, ranks, point, text):
        where = f"{point[0]} {human_bytes(point[1])}, " if point else ""
        problem = {"peer": peer.name, "where": f"{where}{ranks} ranks", "problem": text}
        if problem not in self.problems:
            say(f"bench/compare: {peer.name}, {problem['where']}: {text}")
            self.problems.append(problem)


def _congestion_control():
    try:
        with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def run(s):
    """Measures everything that `s` asks for. -> the report's data (see report.py)."""
    out, began = Results(), time.time()
    machine = Machine(s.build_dir)
    network, load_before = None, os.getloadavg()[0]
    try:
        if s.namespaces:
            network = Network(s.build_dir, s.namespaces, s.mbit, s.delay_us)
        before = machine.round_trip()
        for ranks in s.ranks:
            with Field(s, ranks, network, out) as field:
                for turn in range(s.rounds):
                    _round(s, ranks, turn, field, machine, out)
        after = machine.round_trip()
    finally:
        machine.close()
        if network:
            network.close()
    progress("")
    return {
        "schema": SCHEMA,
        "ranks": s.ranks,
        "rounds": s.rounds,
        "budget_ms": s.budget_ms,
        "sync": s.sync,
        "network": {"ports": s.namespaces, "mbit": s.mbit, "delay_us": s.delay_us} if s.namespaces else None,
        "machine": {
            **provenance(),
            "cores": len(os.sched_getaffinity(0)),
            "clock_us": out.clock_us,
            "load_before": load_before,
            "congestion_control": _congestion_control(),
            "reason": machine.reason,
            "round_trip_ns_before": before,
            "round_trip_ns_after": after,
            "round_trip_ns_min": min((b for b, _ in machine.round_trips_ns), default=None),
            "round_trip_ns_max": max((m for _, m in machine.round_trips_ns), default=None),
            "memory": [
                {"bytes": size, "kernel": name, "streamed": streamed, **figures}
                for size, kernels in machine.memory.items()
                for (name, streamed), figures in kernels.items()
            ],
        },
        "wall_s": round(time.time() - began, 1),
        "rows": list(out.rows.values()),
        "paired": out.paired,
        "problems": out.problems,
        "skipped": out.skipped,
    }


def _round(s, ranks, turn, field, machine, out):
    """Each point once, each peer at it. The peers take turns to go first, so that none always follows the same one."""
    on_this_machine = not s.namespaces and ranks == 2
    for number, point in enumerate(points(s, ranks)):
        collective, size = point
        progress(f"{ranks} ranks, round {turn + 1} of {s.rounds}: {collective} {human_bytes(size)}")
        if s.quiet_wait:
            wait_until_quiet(s.quiet_wait)
        if on_this_machine and collective == "allreduce" and size >= 16 << 20:
            machine.measure_memory(size)
        first = (turn + number) % len(s.peers)
        for peer in s.peers[first:] + s.peers[:first]:
            if size < peer.bytes_min:
                continue
            bare = on_this_machine and peer.name == "gccl" and (collective == "barrier" or point == ("allreduce", 8))
            before = machine.round_trip() if bare else None
            time_us = field.measure(peer, point)
            after = machine.round_trip() if bare else None
            if before and after and time_us:
                out.paired.append(
                    {
                        "collective": collective,
                        "round": turn,
                        "time_us": time_us,
                        "round_trip_ns_before": before,
                        "round_trip_ns_after": after,
                    }
                )
