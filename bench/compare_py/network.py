"""A shaped network of namespaces (bench/tapnet.cpp), and what no algorithm can beat on it."""

import math
import os
import subprocess

from .session import end_with_parent
from .units import Usage, moved_bytes

# A full TCP segment with timestamps carries 1448 bytes and takes 1538 on the wire: 52 of TCP and IP, 14 of Ethernet,
# 24 of preamble, checksum and gap.
PAYLOAD_SHARE = 1448 / 1538


class Network:
    def __init__(self, build, ports, mbit, delay_us):
        if os.geteuid() != 0:
            raise Usage("--namespaces: root is needed to make network namespaces")
        if not os.path.exists("/dev/net/tun"):
            raise Usage("--namespaces: /dev/net/tun is needed, and is not there")
        self.ports, self.mbit, self.delay_us = ports, mbit, delay_us
        self._fds, self._addresses = {}, {}
        self._process = subprocess.Popen(
            [
                os.path.join(build, "bench", "bench_tapnet"),
                "--ports",
                str(ports),
                "--mbit",
                str(mbit),
                "--delay-us",
                str(delay_us),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
            _, port, fd, address = line.split()
            self._fds[int(port)], self._addresses[int(port)] = fd, address
        self.close()
        raise Usage("--namespaces: bench_tapnet could not make them (see above)")

    def enter(self, port):
        return ["nsenter", f"--net=/proc/{self._process.pid}/fd/{self._fds[port]}"]

    def address(self, port):
        return self._addresses[port]

    def close(self):
        self._process.terminate()
        self._process.wait()
        self._process.stdout.close()


# collective -> (the algorithm whose bound it is, formula, share of S through each port and how often a, of n ranks).
# S bytes as nccl-tests counts them, B payload bytes a second through each port, a one-way delay.
BOUNDS = {
    "allreduce": ("ring", "2(n-1)/n S/B + 2(n-1) a", lambda n: (2 * (n - 1) / n, 2 * (n - 1))),
    "allgather": ("ring", "(n-1)/n S/B + (n-1) a", lambda n: ((n - 1) / n, n - 1)),
    "reduce_scatter": ("ring", "(n-1)/n S/B + (n-1) a", lambda n: ((n - 1) / n, n - 1)),
    "broadcast": ("pipeline", "S/B + (n-1) a", lambda n: (1, n - 1)),
    "alltoall": ("pairwise", "(n-1)/n S/B + a", lambda n: ((n - 1) / n, 1)),
    "barrier": ("dissemination", "ceil(log2 n) a", lambda n: (0, math.ceil(math.log2(n)))),
}


def bound_us(collective, size, ranks, mbit, delay_us):
    """-> (the named algorithm's bound, what no algorithm can beat: the same bytes through the ports, and one delay)."""
    share, delays = BOUNDS[collective][2](ranks)
    port_us = share * moved_bytes(collective, size, ranks) / (mbit / 8 * PAYLOAD_SHARE)  # Mbit/s are bits a microsecond
    return port_us + delays * delay_us, port_us + delay_us
