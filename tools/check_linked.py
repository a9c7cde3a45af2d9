#!/usr/bin/env python3
"""The libraries that a program loads when it starts are those of a list, and the program is no larger than it may be:

    check_linked.py PROGRAM LIST MOST_MEGABYTES [OBJECT...]

Asks ldd, so the libraries of libraries count. The size is that of the stripped program less the objects, interpreters of
GPUs that are built into it where their compilers are found."""
import os
import subprocess
import sys
import tempfile

program, listed, most, objects = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4:]
with open(listed, encoding="utf-8") as file:
    allowed = {line.strip() for line in file if not line.startswith("#")} - {""}
loaded = {line.split()[0] for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines()}
loaded = {name for name in loaded if not name.startswith(("linux-vdso", "/lib64/ld-linux"))}
faults = [f"{program} loads {name}, which {listed} does not have" for name in sorted(loaded - allowed)]
faults += [f"{listed} has {name}, which {program} does not load" for name in sorted(allowed - loaded)]
with tempfile.TemporaryDirectory() as folder:
    stripped = os.path.join(folder, "stripped")
    subprocess.run(["strip", "-o", stripped, program], check=True)
    megabytes = (os.path.getsize(stripped) - sum(map(os.path.getsize, objects))) / 1e6
if megabytes > most:
    faults.append(f"{program} has {megabytes:.1f} MB when it is stripped, GPUs' objects apart; it may have {most:.1f}")
print("\n".join(faults) or f"{len(loaded)} libraries, {megabytes:.1f} MB stripped, without {len(objects)} objects of GPUs")
sys.exit(1 if faults else 0)
