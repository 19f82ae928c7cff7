"""Sizes and names as users type them and as tables show them."""

import difflib
import re

SCHEMA = "gccl/bench-comparison/1"  # of results in JSON; what `gccl compare` writes is another one
COLLECTIVES = ("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "barrier", "pingpong")


class Usage(Exception):
    """Wrong input: what was found, and what was expected. Exit status 2."""


def nearest(word, known):
    """' (did you mean X?)', or ''."""
    found = difflib.get_close_matches(word, known, 1, 0.4)
    return f" (did you mean {found[0]}?)" if found else ""


def parse_bytes(text):
    """'8', '16k', '1MiB', '1.5m' in bytes, the units powers of two. From 1 byte to 2 GiB - 4."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    size = float(match[1]) * 1024 ** " kmg".index(match[2] or " ") if match else 0
    if not match or not 1 <= size <= 2**31 - 4:
        raise Usage(f'size "{text}": a number from 1 to 2047m was expected, such as 8, 16k or 128m')
    return int(size)


def parse_list(text, known, what):
    words = [w for w in text.split(",") if w]
    for word in words:
        if word not in known:
            raise Usage(f'{what} "{word}" is unknown{nearest(word, known)}; known: {", ".join(known)}')
    if not words:
        raise Usage(f"{what}: an empty list")
    return [w for w in known if w in words]


def human_bytes(size):
    for shift, unit in ((30, "G"), (20, "M"), (10, "K")):
        if size >= 1 << shift:
            return f"{size / (1 << shift):.4g}{unit}"
    return str(size)


def human_us(us):
    return f"{us:.3f}" if us < 1 else f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def moved_bytes(collective, size, ranks):
    """The bytes behind algbw, as nccl-tests counts them; blocks hold whole floats, at least one."""
    if collective == "barrier":
        return 0
    if collective in ("allgather", "reduce_scatter", "alltoall"):
        return max(1, max(1, size // 4) // ranks) * ranks * 4
    return max(1, size // 4) * 4


def bus_factor(collective, ranks):
    if collective == "allreduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if collective in ("allgather", "reduce_scatter", "alltoall") else 1
