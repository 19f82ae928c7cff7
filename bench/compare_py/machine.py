"""What the machine can do while the peers are measured: bench_machine, and how busy others keep it."""

import os
import subprocess
import time

from .session import end_with_parent


class Machine:
    """Round trips of a cache line and memory bandwidths. `reason` says why there are none."""

    def __init__(self, build):
        self.reason = ""
        self.round_trips_ns = []  # (best, median), in the order of measuring
        self.memory = {}  # bytes -> {(kernel, streamed): {traffic_bytes, time_us_min, time_us}}
        program = os.path.join(build, "bench", "bench_machine")
        if len(os.sched_getaffinity(0)) < 2:
            self.reason = "one processor only"
        elif not os.access(program, os.X_OK):
            self.reason = "bench_machine was not built"
        self._process = (
            None
            if self.reason
            else subprocess.Popen(
                [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent
            )
        )

    def round_trip(self):
        """-> the best round trip in nanoseconds, or None."""
        words = self._ask("roundtrip")
        if not words:
            return None
        self.round_trips_ns.append((float(words[1]), float(words[2])))
        return float(words[1])

    def measure_memory(self, size):
        """Keeps, for each kernel, the shortest median of all calls."""
        known = self.memory.setdefault(size, {})
        for word in (self._ask(f"memory {size}") or [])[1:]:
            name, streamed, traffic, best, median = word.split(":")
            key = (name, streamed == "1")
            if key not in known or float(median) < known[key]["time_us"]:
                known[key] = {"traffic_bytes": float(traffic), "time_us_min": float(best), "time_us": float(median)}

    def _ask(self, command):
        if not self._process:
            return None
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline().split()
        except BrokenPipeError:
            self.reason, self._process = "bench_machine ended", None
            return None

    def close(self):
        if self._process:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None


def provenance():
    """When, of what and where: "" where it is not known."""
    folder = os.path.dirname(os.path.abspath(__file__))
    try:
        commit = subprocess.run(
            ["git", "-C", folder, "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit and f"commit {commit}",
        "processor": names[0] if names else "",
    }


def busy_share(seconds):
    """The share of all processors' time that was used during that many seconds."""

    def read():
        with open("/proc/stat") as stat:
            ticks = [int(x) for x in stat.readline().split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)

    idle, every = read()
    time.sleep(seconds)
    idle_after, every_after = read()
    return 1 - (idle_after - idle) / max(1, every_after - every)


def wait_until_quiet(limit_s):
    """Waits, at most limit_s, until others leave the machine idle. Returns how busy it was at last."""
    end = time.monotonic() + limit_s
    share = busy_share(0.3)
    while share > 0.08 and time.monotonic() < end:
        share = busy_share(0.7)
    return share
