"""Prints the simple cases in the /*TEST blocks of PETSc's examples, one a line: name, source, ranks, arguments,
separated by tabs. Simple: two to six ranks, nothing required, no loops over arguments, no files."""
import pathlib
import re
import sys

for source in sorted(pathlib.Path(sys.argv[1]).glob("*.c")):
    block = re.search(r"/\*TEST(.*?)TEST\*/", source.read_text(errors="replace"), re.S)
    if not block:
        continue
    for case in re.split(r"\n\s*test(?:set)?:\s*\n", block[1])[1:]:
        case = re.split(r"\n\s*build:", case)[0]
        keys = dict(re.findall(r"^\s*(\w+):[ \t]*(.*?)[ \t]*$", case, re.M))
        ranks, arguments = keys.get("nsize", "1"), keys.get("args", "")
        if not ranks.isdigit() or not 2 <= int(ranks) <= 6 or "requires" in keys or re.search(r"[{$*<>|]", arguments):
            continue
        name = source.stem + "_" + keys.get("suffix", "0")
        print(name, source, ranks, arguments, sep="\t")
