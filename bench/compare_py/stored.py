"""Results in files: JSON as measured, or CSV, which keeps rows and, as comments before them, what else a report says."""

import csv
import io
import json

from . import report
from .units import Usage

CSV_COLUMNS = (
    "peer",
    "collective",
    "ranks",
    "bytes",
    "time_us",
    "time_us_min",
    "time_us_max",
    "stalls",
    "algbw_GBps",
    "busbw_GBps",
    "samples",
    "rounds",
)
SCHEMA = "gccl/comparison/1"


def csv_text(data):
    text = io.StringIO()
    for heading, items in report.notes(data):
        text.write("".join([f"# {heading}\n", *(f"#   {item}\n" for item in items)]))
    if data["network"]:
        text.write(f"# network={json.dumps(data['network'])}\n")
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(data["rows"])
    return text.getvalue()


def read(path):
    try:
        with open(path) as file:
            text = file.read()
        data = json.loads(text) if text.lstrip().startswith("{") else _from_csv(text)
    except (OSError, ValueError) as error:
        raise Usage(f"--from {path}: {error}") from None
    if data.get("schema") != SCHEMA:
        raise Usage(f'--from {path}: "schema": "{SCHEMA}" was expected, as --json writes it')
    return data


def _from_csv(text):
    lines = text.splitlines()
    data = {"schema": SCHEMA, "network": None, "notes": [], "problems": []}
    for line in lines:
        if line.startswith("# network="):
            data["network"] = json.loads(line.removeprefix("# network="))
        elif line.startswith("#   ") and data["notes"]:
            data["notes"][-1][1].append(line[4:])
        elif line.startswith("# "):
            data["notes"].append([line[2:], []])
    reader = csv.DictReader(line for line in lines if not line.startswith("#"))
    if not set(CSV_COLUMNS[:5]) <= set(reader.fieldnames or ()):
        raise ValueError(f"JSON, or CSV with the columns {', '.join(CSV_COLUMNS[:5])}, was expected")
    data["rows"] = [
        {k: v if k in CSV_COLUMNS[:2] else float(v) if "_" in k else int(v) for k, v in row.items() if v}
        for row in reader
    ]
    return data
