"""Results in files: JSON as measured, or CSV, which keeps rows and, as comments before them, what else a report says."""

import csv
import io
import json

from . import report
from .units import SCHEMA, Usage

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
KEYS = CSV_COLUMNS[:5]  # of a row, which a report needs


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
        if data.get("schema") != SCHEMA:
            raise ValueError(f'"schema": "{SCHEMA}" was expected, as --json writes it')
        rows = data.get("rows")
        if not isinstance(rows, list):
            found = json.dumps(rows)[:60] if "rows" in data else "nothing"
            raise ValueError(f'"rows": found {found}, expected a list, as --json writes it')
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise ValueError(f"row {number}: found {json.dumps(row)[:60]}, expected an object with {', '.join(KEYS)}")
            if lacking := [key for key in KEYS if key not in row]:
                raise ValueError(f"row {number}: \"{lacking[0]}\" is missing; expected {', '.join(KEYS)}")
    except (OSError, ValueError) as error:
        raise Usage(f"--from {path}: {error}") from None
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
    if not set(KEYS) <= set(reader.fieldnames or ()):
        raise ValueError(f"JSON, or CSV with the columns {', '.join(KEYS)}, was expected")
    data["rows"] = []
    for number, row in enumerate(reader):
        if None in row:
            fields, due = len(row) - 1 + len(row[None]), len(reader.fieldnames)
            raise ValueError(f"row {number}: found {fields} fields, expected {due}, one for each column")
        data["rows"].append(
            {k: v if k in CSV_COLUMNS[:2] else float(v) if "_" in k else int(v) for k, v in row.items() if v}
        )
    return data
