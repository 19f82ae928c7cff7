"""The command line of bench/compare."""

import argparse
import os

from . import peers
from .units import COLLECTIVES, Usage, nearest, parse_bytes, parse_list

DESCRIPTION = """Measures GCCL beside the libraries people run today, interleaved: at each point one peer after the
other, the order turning from round to round, and of all rounds the lowest median is kept. Points over shared memory are
compared with every peer, points over TCP with the TCP peers. Exit status: 0 done; 1 GCCL failed or computed a wrong
result; 2 wrong usage. docs/performance.md has the method."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Usage(message)


def _positive(kind, least):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not value >= least:
            raise argparse.ArgumentTypeError(f'"{text}": a number of at least {least} was expected')
        return value

    return parse


def _parser(root):
    p = Parser(prog="bench/compare", description=DESCRIPTION, allow_abbrev=False)
    p.add_argument("--ranks", metavar="N,...", help="rank counts (default 2,4)")
    p.add_argument("--collectives", metavar="C,...", help=f"of {','.join(COLLECTIVES)} (default all)")
    p.add_argument("--sizes", metavar="S,...", help="such as 8,16k,1m (default 8,1k,16k,256k,1m,16m,128m)")
    p.add_argument("--full", action="store_true", help="sizes 8 to 128m by factors of 4")
    p.add_argument("--peers", metavar="P,...", help=f"of {','.join(peers.NAMES)} (default {','.join(peers.DEFAULT)})")
    p.add_argument(
        "--transport", metavar="shm|tcp", help="GCCL over this transport only, with the peers that it is compared to"
    )
    p.add_argument("--rounds", metavar="R", type=_positive(int, 1), help="(default 3)")
    p.add_argument(
        "--budget-ms",
        metavar="MS",
        type=_positive(float, 0.1),
        help="of samples per peer, point and round (default 60)",
    )
    p.add_argument("--quick", action="store_true", help="a subset of about two minutes")
    p.add_argument(
        "--quiet-wait",
        metavar="S",
        type=_positive(float, 0),
        default=0,
        help="wait up to S seconds before each point until the machine is idle (default 0)",
    )
    p.add_argument(
        "--sync",
        metavar="barrier|osu|window",
        help="how ranks begin together, docs/performance.md (default barrier; window in namespaces)",
    )
    p.add_argument(
        "--namespaces",
        metavar="N",
        type=_positive(int, 2),
        help="N network namespaces on a shaped switch instead (root)",
    )
    p.add_argument("--mbit", metavar="M", type=_positive(float, 1), help="rate of each port of it (default 1000)")
    p.add_argument("--delay-us", metavar="D", type=_positive(float, 0), help="its delay, one way (default 1000)")
    p.add_argument("--json", metavar="FILE", help="results as JSON; - for standard output, alone")
    p.add_argument("--csv", metavar="FILE", help="medians and conditions as CSV; - for standard output, alone")
    p.add_argument("--markdown", metavar="FILE", help="the report as Markdown; - for standard output, alone")
    p.add_argument(
        "--from",
        metavar="FILE",
        dest="source",
        help="report on an earlier --json or --csv FILE instead of measuring, such as those in bench/results",
    )
    p.add_argument(
        "--build-dir", metavar="DIR", default=os.path.join(root, "build", "release"), help="(default build/release)"
    )
    p.add_argument("--no-build", action="store_true", help="use what is built")
    return p


def _choice(text, known, what):
    if text is not None and text not in known:
        raise Usage(f'{what} "{text}" is unknown{nearest(text, known)}; known: {", ".join(known)}')
    return text


def _ranks(text, most):
    found = []
    for word in text.split(","):
        if not word.isdecimal() or not 2 <= int(word) <= most:
            raise Usage(f'--ranks "{word}": a number from 2 to {most} was expected')
        found.append(int(word))
    return sorted(set(found))


def parse(arguments, root):
    """-> the options, every default resolved: ranks, sizes, points and peers are lists. Raises Usage."""
    parser = _parser(root)
    s, unknown = parser.parse_known_args(arguments)
    if unknown:
        known = [o for a in parser._actions for o in a.option_strings]
        raise Usage(f"{unknown[0]} is unknown{nearest(unknown[0], known)}; bench/compare --help lists the options")
    _choice(s.transport, ("shm", "tcp"), "--transport")
    _choice(s.sync, ("barrier", "osu", "window"), "--sync")
    if [s.json, s.csv, s.markdown].count("-") > 1:
        raise Usage("only one of --json, --csv and --markdown can have standard output")
    if s.namespaces and s.namespaces > 64:
        raise Usage(f"--namespaces {s.namespaces}: at most 64 were expected")
    if s.namespaces and s.ranks:
        raise Usage("--ranks does not go with --namespaces: each namespace is one rank")
    if not s.namespaces and (s.mbit is not None or s.delay_us is not None):
        raise Usage("--mbit and --delay-us go with --namespaces N")
    if s.full and s.sizes:
        raise Usage("--full and --sizes exclude each other")

    sizes = "8,16k,1m,16m" if s.namespaces or s.quick else "8,1k,16k,256k,1m,16m,128m"
    s.ranks = [s.namespaces] if s.namespaces else _ranks(s.ranks or "2,4", 64)
    s.sizes = (
        [8 * 4**k for k in range(13)] if s.full else sorted({parse_bytes(w) for w in (s.sizes or sizes).split(",")})
    )
    s.collectives = parse_list(s.collectives, COLLECTIVES, "--collectives") if s.collectives else list(COLLECTIVES)
    s.sync = s.sync or ("window" if s.namespaces else "barrier")
    s.mbit, s.delay_us = 1000 if s.mbit is None else s.mbit, 1000 if s.delay_us is None else s.delay_us
    s.rounds = s.rounds or (2 if s.quick or s.namespaces else 3)
    s.budget_ms = s.budget_ms or (1000 if s.namespaces else 15 if s.quick else 60)
    s.warmup = 2
    s.samples_min, s.samples_max = (5 if s.namespaces else 4), 10000
    s.peers = _peers(s)
    return s


def _peers(s):
    names = parse_list(s.peers, peers.NAMES, "--peers") if s.peers else list(peers.DEFAULT)
    if s.namespaces:
        names = [n for n in names if n in ("gccl-tcp", "openmpi-tcp") or n.startswith("gloo")]
        if s.transport == "shm":
            raise Usage("--transport shm does not go with --namespaces: namespaces are like machines")
    transport = "tcp" if s.namespaces else s.transport
    ours = [p.name for p in peers.PEERS if p.ours and transport in (None, "tcp" if p.tcp else "shm")]
    if s.transport == "tcp":
        names = [n for n in names if peers.BY_NAME[n].tcp]
    # GCCL runs, whatever --peers says: it is what everything is compared with.
    return [peers.BY_NAME[n] for n in peers.NAMES if n in ours or (n in names and not peers.BY_NAME[n].ours)]


def points(s, ranks):
    """(collective, bytes) in the order of measuring."""
    for collective in s.collectives:
        if collective == "pingpong" and (ranks != 2 or s.namespaces):
            continue  # idle ranks would take the cores
        for size in [0] if collective == "barrier" else s.sizes:
            yield collective, size
