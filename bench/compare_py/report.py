"""What bench/compare prints: tables and findings, as plain text or as Markdown."""

from . import network, peers, summary
from .units import human_bytes, human_us

class Plain:
    """Aligned columns."""

    @staticmethod
    def heading(text):
        return [text, "=" * len(text)]

    @staticmethod
    def table(header, rows):
        widths = [max(len(r[i]) for r in [header, *rows]) for i in range(len(header))]
        return [
            "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in [header, *rows]
        ] + [""]

    @staticmethod
    def items(lines):
        return [*lines, ""]


class Markdown:
    @staticmethod
    def heading(text):
        return [f"### {text}", ""]

    @staticmethod
    def table(header, rows):
        return [
            "| " + " | ".join(header) + " |",
            "|---" + "|--:" * (len(header) - 1) + "|",
            *("| " + " | ".join(row) + " |" for row in rows),
            "",
        ]

    @staticmethod
    def items(lines):
        return [*("- " + line.strip() for line in lines), ""]


def render(data, style):
    """The whole report, as lines; the last one is summary.last_line in plain text."""
    points = summary.points_of(data)
    lines = []
    for transport, title in (
        ("shm", "GCCL over shared memory"),
        ("mem", "GCCL over shared memory, buffers in GCCL_Mem_alloc's memory"),
        ("tcp", "GCCL over TCP"),
    ):
        mine = [p for p in points if p.transport == transport]
        if mine:
            lines += style.heading(f"{title}: median us; ratio = best peer / GCCL")
            lines += style.table(*_times(data, mine, transport))
    lows = summary.worst(points, 10)
    if lows:
        lines += style.heading("The worst ten points")
        lines += style.table(
            ["where", "GCCL us", "best us", "ratio"],
            [[summary.where(p), human_us(p.ours_us), human_us(p.best_us), f"{p.ratio:.2f}"] for p in lows],
        )
        lines += style.heading("Geometric means of the ratios")
        lines += style.table(
            ["of", "points", "mean", "goal"],
            [[name, str(n), f"{mean:.2f}", f"{goal}" if goal else ""] for name, mean, n, goal in summary.means(points)],
        )
        ratios = [p.ratio for p in summary.headline(points) if p.ratio]
        lines += style.items([f"points below 0.9: {sum(r < 0.9 for r in ratios)} of {len(ratios)} (goal: 0)"])
    for heading, items in notes(data):
        lines += style.heading(heading) + style.items(items)
    if style is Plain:
        lines.append(summary.last_line(points))
    return lines


def notes(data):
    """[(heading, sentences)]: what is no table. Results that were read from CSV have them as they were written."""
    if "notes" in data:
        return data["notes"]
    points = summary.points_of(data)
    found = [
        ("The limits of memory", _memory(data, points)),
        ("The limits of a cache line", _lines(data, points)),
        ("More ranks than cores", _stalls(data)),
        ("The network's bounds", _network(data)),
        ("How it was measured", _conditions(data)),
        ("Problems", _problems(data)),
    ]
    return [(heading, items) for heading, items in found if items]


def _times(data, points, transport):
    present = {row["peer"] for row in data["rows"]}
    ours = summary.TRANSPORTS[transport]
    columns = [p.name for p in peers.PEERS if p.name in present and not p.ours and (p.tcp or transport != "tcp")]
    bounded = bool(data["network"])
    rows = []
    for p in points:
        cells = [
            f"{p.collective} {p.ranks} ranks" + (f" {human_bytes(p.bytes)}" if p.collective != "barrier" else ""),
            human_us(p.ours_us) if p.ours_us else "-",
            f"{p.ratio:.2f}" if p.ratio else "-",
            p.best or "-",
        ]
        if bounded:
            bound, floor = summary.network_bounds_us(data, p)
            cells += [human_us(bound), human_us(floor), f"{bound / p.ours_us:.0%}" if p.ours_us else "-"]
        rows.append(cells + [human_us(p.times_us[c]) if c in p.times_us else "-" for c in columns])
    header = ["point", ours, "ratio", "best peer"] + (["bound", "floor", "bound/GCCL"] if bounded else []) + columns
    return header, rows


def _memory(data, points):
    found = []
    for b in summary.memory_bounds(data, points):
        rates = ", ".join(
            f"{name} {b.rates[name, True]:.1f} streamed and {b.rates[name, False]:.1f} ordinary"
            for name in ("copy", "triad", "allreduce")
        )
        found.append(
            f"all-reduce of {human_bytes(b.bytes)} = S, 2 ranks. Each of the 2 inputs must be read at least once and "
            f"each of the 2 outputs written: 4 S of traffic with streaming stores, 6 S with ordinary ones, which "
            f"read each line for ownership before they write it."
        )
        found.append(f"  measured here, two cores, GB/s of traffic: {rates}")
        found.append(
            f"  bound = 4 S / {b.bytes * 4 / b.streamed_us / 1e3:.1f} GB/s = {human_us(b.streamed_us)} us; with "
            f"ordinary stores 6 S / {b.bytes * 6 / b.ordinary_us / 1e3:.1f} GB/s = {human_us(b.ordinary_us)} us; that least "
            f"work as one loop in one process: {human_us(b.kernel_us)} us"
        )
        if b.best_us:
            found.append(
                f"  best peer ({b.best}): {human_us(b.best_us)} us, {b.streamed_us / b.best_us:.0%} of the bound"
            )
        for name, ours_us in (("GCCL", b.ours_us), ("GCCL, buffers in GCCL_Mem_alloc's memory", b.mem_us)):
            if ours_us:
                found.append(
                    f"  {name}: {human_us(ours_us)} us, {b.streamed_us / ours_us:.0%} of the bound (goal: 85%), "
                    f"{b.kernel_us / ours_us:.0%} of the loop"
                )
    return found


def _lines(data, points):
    machine = data["machine"]
    if not machine["round_trip_ns_min"]:
        return [f"not measured: {machine['reason']}"] if machine["reason"] else []
    found = [
        f"round trip of a cache line between two cores: {machine['round_trip_ns_before']:.0f} ns before, "
        f"{machine['round_trip_ns_after']:.0f} ns after the run, lowest {machine['round_trip_ns_min']:.0f}, "
        f"highest median {machine['round_trip_ns_max']:.0f}"
    ]
    for collective, ours_us, multiple, paired in summary.round_trip_multiples(data, points):
        between = f"; beside it, round by round: {', '.join(f'{m:.2f}' for m in paired)}" if paired else ""
        what = "barrier" if collective == "barrier" else "all-reduce of 8 bytes"
        less_us = max(0.0, ours_us - machine["clock_us"])
        found.append(
            f"  {what}, 2 ranks: {ours_us * 1e3:.0f} ns, {multiple:.2f} of the lowest round trip (goal: 1.5; without "
            f"the clock's {machine['clock_us'] * 1e3:.0f} ns: {less_us * 1e3 / machine['round_trip_ns_min']:.2f})"
            f"{between}"
        )
    return found


def _stalls(data):
    if data["network"]:
        return []
    found = [
        f"{peer}, {ranks} ranks on {data['machine']['cores']} cores: {stalls} of {samples} samples ({stalls / samples:.2%}) "
        f"took 4 ms more than their median; the longest {human_us(longest)} us"
        for peer, ranks, stalls, samples, longest in summary.stalls(data)
    ]
    return ["of points with a median below 1 ms", *(f"  {line}" for line in found)] if found else []


def _network(data):
    net = data["network"]
    if not net:
        return []
    rate = net["mbit"] / 8 * network.PAYLOAD_SHARE
    found = [
        f"n = {net['ports']} namespaces, {net['mbit']:g} Mbit/s and a = {net['delay_us']:g} us one way; "
        f"B = {net['mbit']:g}/8 x 1448/1538 = {rate:.1f} MB/s of payload in full segments"
    ]
    for collective, (name, formula, _) in network.BOUNDS.items():
        if any(row["collective"] == collective for row in data["rows"]):
            found.append(f"  {collective}, bound of a {name}: {formula}")
    found.append(
        "  floor, of any algorithm: the same bytes through each port, and one delay; below the bound, where S is small"
    )
    return found


def _conditions(data):
    machine = data["machine"]
    found = [", ".join(machine[key] for key in ("date", "commit", "processor") if machine.get(key))] + [
        f"{machine['cores']} cores; {data['rounds']} rounds, the lowest median of each point kept; {data['budget_ms']:g} "
        f"ms of samples each; {data['sync']} sync; TCP congestion control {machine['congestion_control']}; load "
        f"{machine['load_before']:.2f} before; {data['wall_s']:.0f} s in all",
        f"a sample holds one reading of the clock, {machine['clock_us'] * 1e3:.0f} ns",
    ]
    return [f for f in found if f] + [f"not there: {who}: {why}" for who, why in data["skipped"].items()]


def _problems(data):
    return [f"{p['peer']}, {p['where']}: {p['problem']}" for p in data["problems"]]
