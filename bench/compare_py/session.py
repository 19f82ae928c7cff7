"""One peer's processes, up and waiting, and the measuring of one point on them (see bench/peers/loop.hpp)."""

import ctypes
import os
import selectors
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from . import peers

START_LIMIT_S = 30
STALL_US = 4000  # a scheduler's tick: so much beyond the median, and somebody waited who should have made room
POINT_LIMIT_S = 60


class Failed(Exception):
    """The peer's processes ended, hung or never came; the session is over."""


def end_with_parent():
    """For preexec_fn: SIGTERM when this program ends, whatever ends it."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Session:
    def __init__(self, peer, ranks, build, network=None):
        self.peer, self.ranks = peer, ranks
        self.clock_us = 0.0
        self._folder = tempfile.mkdtemp(prefix="gccl-bench-")
        self._processes, self._links = [], []
        try:
            self._start(build, network)
        except BaseException:
            self.close()
            raise

    def _start(self, build, network):
        path = os.path.join(self._folder, "control")
        store = os.path.join(self._folder, "store")
        os.mkdir(store)
        self._log = open(os.path.join(self._folder, "log"), "w+b")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(self.ranks)
            for command, environment in peers.commands(self.peer, self.ranks, build, path, store, network):
                self._processes.append(
                    subprocess.Popen(
                        command,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=self._log,
                        stderr=self._log,
                        start_new_session=True,
                        preexec_fn=end_with_parent,
                    )
                )
            end = time.monotonic() + START_LIMIT_S
            listener.settimeout(0.2)
            links = []
            while len(links) < self.ranks:
                try:
                    link, _ = listener.accept()
                    links.append(Link(link))
                except TimeoutError:
                    self._check(end, "only %d of %d ranks came up" % (len(links), self.ranks))
        self._links = links
        greetings = [line.split() for line in self._answers(START_LIMIT_S)]
        order = [int(g[1]) for g in greetings]
        if sorted(order) != list(range(self.ranks)):
            raise Failed("the ranks are not one job: the launcher belongs to another library")
        self._links = [links[order.index(rank)] for rank in range(self.ranks)]
        self.clock_us = min(float(g[2]) for g in greetings)

    def measure(self, point, settings):
        """-> dict with time_us, time_us_min, time_us_max, stalls, samples, wrong. Raises Failed."""
        collective, size = point
        tight = not self.peer.yields and self.ranks > len(os.sched_getaffinity(0))
        budget_us = settings.budget_ms * 1e3 * (0.25 if tight else 1)
        period_ns = 0
        for _ in range(4):
            self._say(f"prepare {collective} {size} {1 if tight else settings.warmup} {POINT_LIMIT_S}")
            ready = [line.split() for line in self._answers(POINT_LIMIT_S)]
            wrong = sum(int(r[1]) for r in ready)
            estimate_us = max(float(r[2]) for r in ready)
            count = int(budget_us / (2 * max(estimate_us, 0.02)))
            count = max(2 if tight else settings.samples_min, min(settings.samples_max, count))
            windowed = settings.sync == "window" and collective != "pingpong"
            if windowed:
                period_ns = max(2 * period_ns, int(1500 * estimate_us) + 1_000_000)
                ref_ns = time.monotonic_ns() + 50_000_000
                self._say(f"sample {count} {POINT_LIMIT_S} {ref_ns} {period_ns}")
            else:
                self._say(f"sample {count} {POINT_LIMIT_S} {time.monotonic_ns()}")
            answers = [line.split() for line in self._answers(POINT_LIMIT_S)]
            wrong += sum(int(a[1]) for a in answers)
            of_ranks = [[int(x) for x in a[2:]] for a in answers]
            samples = (
                [us for us in windowed_us(of_ranks, period_ns) if us is not None]
                if windowed
                else (synchronised_us(of_ranks, collective, settings.sync))
            )
            if 2 * len(samples) >= count:
                median = statistics.median(samples)
                return {
                    "time_us": median,
                    "time_us_min": min(samples),
                    "time_us_max": max(samples),
                    "stalls": sum(us >= median + STALL_US for us in samples),
                    "samples": len(samples),
                    "wrong": wrong,
                }
        raise Failed(f"operations kept missing their window of {period_ns / 1e3:.0f} us")

    def close(self, orderly=False):
        if orderly:
            try:
                self._say("quit")
                for process in self._processes:
                    process.wait(5)
            except (Failed, subprocess.TimeoutExpired):
                orderly = False
        status = next((p.returncode for p in self._processes if p.returncode), 0) if orderly else 1
        for link in self._links:
            link.close()
        for process in self._processes:
            _end(process)
        if hasattr(self, "_log"):
            self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._processes, self._links = [], []
        return status

    def said(self):
        """The last lines of what the processes wrote."""
        self._log.flush()
        with open(os.path.join(self._folder, "log"), errors="replace") as log:
            lines = [line.strip() for line in log.read()[-4000:].splitlines() if line.strip(" -\n")]
        return " | ".join(lines[-4:])

    def _say(self, line):
        for link in self._links:
            try:
                link.socket.sendall(line.encode() + b"\n")
            except OSError:
                raise Failed(self._why("a rank is gone")) from None

    def _answers(self, limit_s):
        """One line of every rank, in the order of self._links: by rank, once the greetings have said it."""
        end, lines = time.monotonic() + limit_s + 5, {}
        with selectors.DefaultSelector() as selector:
            for index, link in enumerate(self._links):
                selector.register(link.socket, selectors.EVENT_READ, index)
            while len(lines) < self.ranks:
                left = end - time.monotonic()
                ready = selector.select(max(0, left))
                if not ready:
                    raise Failed(self._why(f"no answer after {limit_s} s: hung"))
                for key, _ in ready:
                    line = self._links[key.data].read()
                    if line is None:
                        raise Failed(self._why("a rank is gone"))
                    if line:
                        lines[key.data] = line
                        selector.unregister(key.fileobj)
        return [lines[index] for index in range(self.ranks)]

    def _check(self, end, what):
        dead = next((p for p in self._processes if p.poll() is not None), None)
        if dead is not None or time.monotonic() > end:
            raise Failed(self._why(what))

    def _why(self, what):
        time.sleep(0.3)  # the launcher may be about to say why
        codes = [p.poll() for p in self._processes]
        ended = ", ".join(f"signal {-c}" if c < 0 else f"status {c}" for c in codes if c)
        said = self.said()
        return what + (f" ({ended})" if ended else "") + (f": {said}" if said else "")


def synchronised_us(of_ranks, collective, sync):
    """One figure for each sample behind a barrier; of_ranks[r] is begin, end, begin, end, ... in nanoseconds.

    The longest of the ranks' own times, as OSU does. That says little about broadcast: who leaves the barrier late
    finds the data there, and with more ranks than cores a median of 0.2 us comes out where a switch of processes alone
    takes ten times that. So a broadcast counts from the root's beginning to the last rank's end, unless sync is "osu".
    """
    begins, ends = [r[0::2] for r in of_ranks], [r[1::2] for r in of_ranks]
    if collective == "pingpong":  # eight round trips, at rank 0
        return [(end - begin) / 16e3 for begin, end in zip(begins[0], ends[0])]
    if collective == "broadcast" and sync != "osu":
        return [(max(last) - root) / 1e3 for root, last in zip(begins[0], zip(*ends))]
    return [max(e - b for b, e in zip(begin, end)) / 1e3 for begin, end in zip(zip(*begins), zip(*ends))]


def windowed_us(of_ranks, period_ns):
    """From each sample's instant to the end on the slowest rank; None where a rank was not ready in time. After Hunold
    and Carpen-Amarie, "Reproducible MPI benchmarking is still not as easy as you think" (TPDS 2016)."""
    begins, ends = zip(*(r[0::2] for r in of_ranks)), zip(*(r[1::2] for r in of_ranks))
    return [
        (max(end) - k * period_ns) / 1e3 if max(begin) <= k * period_ns else None
        for k, (begin, end) in enumerate(zip(begins, ends))
    ]


class Link:
    """A rank's socket, read by lines."""

    def __init__(self, connected):
        self.socket, self._parts = connected, []

    def read(self):
        """A whole line; '' when it is not all there yet; None at the end."""
        try:
            chunk = self.socket.recv(1 << 20)
        except OSError:
            return None
        if not chunk:
            return None
        self._parts.append(chunk)
        if not chunk.endswith(b"\n"):  # a rank never says two lines unasked
            return ""
        line = b"".join(self._parts).decode().strip()
        self._parts = []
        return line

    def close(self):
        self.socket.close()


def _end(process):
    """SIGTERM, and SIGKILL after two seconds, to the process's whole session."""
    for number, seconds in ((signal.SIGTERM, 2), (signal.SIGKILL, 5)):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            continue
