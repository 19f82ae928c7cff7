"""The libraries under comparison: how each one's processes are started."""

import dataclasses
import os
import secrets
import shutil

from .units import COLLECTIVES


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    program: str  # below bench/peers of the build folder
    tcp: bool  # moves its data over TCP
    launcher: str = ""  # "" where this program starts the ranks itself
    options: tuple = ()  # of the launcher
    environment: tuple = ()  # pairs
    gloo: str = ""  # Gloo's all-reduce
    collectives: tuple = COLLECTIVES
    arguments: tuple = ()  # of the program
    bytes_min: int = 0  # not measured below
    yields: bool = True  # gives the core away while it waits: fit for more ranks than cores

    @property
    def ours(self):
        return self.program == "bench_peer_gccl"


def _openmpi(name, tcp, *options, yields=True):
    return Peer(name, "bench_peer_openmpi", tcp, "mpirun.openmpi", options, yields=yields)


PEERS = (
    Peer("gccl", "bench_peer_gccl", False, environment=(("GCCL_BACKENDS", "shm"),)),
    # Buffers in GCCL_Mem_alloc's memory instead of ordinary memory: no difference to short messages.
    Peer(
        "gccl-mem",
        "bench_peer_gccl",
        False,
        arguments=("--memory", "gccl"),
        environment=(("GCCL_BACKENDS", "shm"),),
        bytes_min=64 << 10,
    ),
    _openmpi("openmpi", False),
    # coll/sm is off by default, and the strongest opponent for broadcasts and large all-reduces between two ranks. Its
    # flags are spun on without yielding.
    _openmpi("openmpi-sm", False, "--mca", "coll_sm_priority", "95", yields=False),
    # Without the two lists Open MPI takes UCX only where it finds an InfiniBand card.
    _openmpi(
        "openmpi-ucx", False, "--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"
    ),
    Peer("mpich", "bench_peer_mpich", False, "mpirun.mpich", yields=False),
    Peer("gccl-tcp", "bench_peer_gccl", True, environment=(("GCCL_BACKENDS", "tcp"),)),
    _openmpi("openmpi-tcp", True, "--mca", "pml", "ob1", "--mca", "btl", "tcp,self"),
    Peer(
        "mpich-tcp",
        "bench_peer_mpich",
        True,
        "mpirun.mpich",
        yields=False,
        environment=(("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "tcp,self"), ("UCX_NET_DEVICES", "lo")),
    ),
    Peer("gloo", "bench_peer_gloo", True, gloo="ring"),
    Peer("gloo-hd", "bench_peer_gloo", True, gloo="halving_doubling", collectives=("allreduce",)),
    Peer("gloo-chunked", "bench_peer_gloo", True, gloo="ring_chunked", collectives=("allreduce",)),
    Peer("gloo-bcube", "bench_peer_gloo", True, gloo="bcube", collectives=("allreduce",)),
)
NAMES = tuple(p.name for p in PEERS)
# The other two of Gloo's all-reduces have never been the fastest peer where these two were measured.
DEFAULT = tuple(n for n in NAMES if n not in ("gloo-chunked", "gloo-bcube"))
BY_NAME = {p.name: p for p in PEERS}


def absent(peer, ranks, build):
    """Why a peer does not run here, or ''."""
    if peer.name == "mpich-tcp" and ranks > len(os.sched_getaffinity(0)):
        return "it spins without yielding, and with more ranks than cores takes 10 ms and up for a call"
    if not os.access(os.path.join(build, "bench", "peers", peer.program), os.X_OK):
        return f"{peer.program} was not built" + ("" if peer.ours else ": its library's development package is missing")
    if peer.launcher and not shutil.which(peer.launcher):
        return f"{peer.launcher} is not there"
    return ""


def commands(peer, ranks, build, control, folder, network):
    """The processes to start: a list of (command, environment). `network`: namespaces to be in, or None."""
    program = os.path.join(build, "bench", "peers", peer.program)
    measured = [program, "--control", control, *peer.arguments]
    environment = dict(os.environ, **dict(peer.environment))
    cores = sorted(os.sched_getaffinity(0))
    fits = ranks <= len(cores)
    enter = [network.enter(rank) if network else [] for rank in range(ranks)]

    if peer.launcher:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = [peer.launcher, *peer.options]
        if peer.launcher == "mpirun.openmpi":
            # Binds to cores by itself where the ranks fit, and yields where they do not.
            command += ["--oversubscribe", "--mca", "btl_base_warn_component_unused", "0"]
            if peer.tcp:
                command += ["--mca", "btl_tcp_if_include", "eth0" if network else "lo"]
        elif fits:
            command += ["-bind-to", "core"]
        if not network:
            return [(command + ["-n", str(ranks), *measured], environment)]
        # The launcher's own server must listen where the other namespaces reach it.
        environment["PMIX_MCA_ptl_tcp_if_include"] = "eth0"
        for rank in range(ranks):
            command += ([":"] if rank else []) + ["-n", "1", *enter[rank], *measured]
        return [(enter[0] + command, environment)]

    if peer.ours and not network:
        gccl = os.path.join(build, "gccl")
        return [([gccl, "launch", "-n", str(ranks), "--", *measured], environment)]

    if peer.ours:
        environment.update(
            GCCL_SIZE=str(ranks), GCCL_SECRET=secrets.token_hex(16), GCCL_STORE=f"tcp://{network.address(0)}:29400"
        )
    started = []
    for rank in range(ranks):
        command, own = list(enter[rank]), dict(environment)
        if peer.ours:
            own.update(GCCL_RANK=str(rank), GCCL_ADDRESS=network.address(rank), GCCL_HOST=f"host{rank}")
            command += measured
        else:
            command += [
                *measured,
                "--rank",
                str(rank),
                "--size",
                str(ranks),
                "--store",
                folder,
                "--interface",
                "eth0" if network else "lo",
                "--allreduce",
                peer.gloo,
            ]
        started.append((command, own))
    return started
