#!/usr/bin/env python3
"""What every kernel and body of the GPUs' interpreter objects takes, and whether it is within its budget.

    object_table.py [--quiet] ISA=OBJECT...     prints a table; exits 1 and names each body that is over

Of NVIDIA's objects OBJECT.log (what `nvlink -v` said) and OBJECT.parts/*.log (`ptxas -v`, of the kernels and of each
body) are read, of AMD's OBJECT.s (assembly, with LLVM's notes on every function). Registers: of a thread; on AMD,
vector and accumulation registers of a lane together, and scalar ones of a wave. NVIDIA's bodies have the registers of
the kernel that calls them. Stack: bytes a thread, of its own; spilled: the bytes of it to which registers are written,
those that a body saves for its caller among them. Shared: bytes of a team, those asked for at launch included.
"""
import pathlib
import re
import struct
import sys
from dataclasses import dataclass

# The most that an ISA gives: registers of a thread of a team of 256 (CUDA C programming guide 13.0, table of compute
# capabilities; LLVM's AMDGPU back end: 256 vector and 256 accumulation registers at one wave a SIMD) and bytes of
# shared memory of a team (227 KB, 99 KB, 64 KB, 160 KB; the same and CDNA 3's and CDNA 4's white papers).
LIMITS = {
    "sm_90a": (255, 232448),
    "sm_120": (255, 101376),
    "gfx942": (512, 65536),
    "gfx950": (512, 163840),
}
# No body may spill in its loops. A body saves registers of its caller, which the same instructions do: that much is let
# pass, of NVIDIA's the 16 that PLOW_KEEPS_FEW_REGISTERS names (isa/nvidia/prims.cuh) and two with the address to which
# it returns. The kernel keeps what it knows of its worker over the call of a body.
SPILL_OF_BODY = {"sm_90a": 72, "sm_120": 72, "gfx942": 32, "gfx950": 32}
SPILL_OF_KERNEL = {"sm_90a": 128, "sm_120": 144, "gfx942": 128, "gfx950": 128}

# Of a block's shared memory, which nvlink counts and LIMITS do not (CUDA C++ programming guide 13.0, "Shared Memory" of
# compute capabilities 8.x and later).
SHARED_OF_THE_SYSTEM = 1024
SHARED_WORD = 5  # of plow_carried: SharedBytes (isa/gpu/carried.h)
RESIDENT = "plow_resident"


@dataclass
class Part:
    """A kernel, or a body."""

    name: str
    vector: int = 0  # registers; 0: those of its kernel
    scalar: int = 0
    stack: int = 0
    spilled: int = 0
    shared: int = 0
    code: int = 0

    @property
    def is_kernel(self):
        return self.name.startswith("plow_")


def short_name(symbol):
    """The kernel or operator that a symbol names; None for others."""
    body = re.search(r"plow(?:3dev|6nvidia)(?:L)?\d+(\w+?)(?:_team)?_body[EIR]", symbol)
    if body:
        return body[1]
    return symbol if re.fullmatch(r"plow_[a-z_]+", symbol) else None


class Elf:
    """As much of a 64-bit little-endian ELF file as names symbols (System V ABI, chapter 4)."""

    def __init__(self, data):
        self.data = data
        start, = struct.unpack_from("<Q", data, 40)
        count, = struct.unpack_from("<H", data, 60)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i) for i in range(count)]

    def symbols(self):
        """(name, section, value, size)"""
        for section in self.sections:
            if section[1] != 2:  # SHT_SYMTAB
                continue
            names = self.sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, _, _, index, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
                end = self.data.index(b"\0", names + name)
                yield self.data[names + name : end].decode(), index, value, size

    def word(self, symbol, index):
        for name, section, value, _ in self.symbols():
            if name == symbol:
                header = self.sections[section]
                return struct.unpack_from("<I", self.data, header[4] + value - header[3] + 4 * index)[0]
        raise ValueError(f"no symbol {symbol}")


def nvidia_parts(elf, of_parts, of_link):
    """From what ptxas said of the parts, and nvlink of the whole."""
    parts = {}
    current = None
    for line in of_parts.splitlines():
        if found := re.search(r"Function properties for (\S+)", line):
            current = parts.setdefault(short_name(found[1]), Part(short_name(found[1]) or ""))
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores", line):
            # Of a body that is compiled for several types: the most.
            current.stack, current.spilled = max(current.stack, int(found[1])), max(current.spilled, int(found[2]))
    parts.pop(None, None)
    for kernel, registers, shared in re.findall(
            r"Function properties for '(\w+)':\s.*used (\d+) registers.*?(\d+) bytes smem", of_link):
        parts[kernel].vector, parts[kernel].shared = int(registers), max(int(shared) - SHARED_OF_THE_SYSTEM, 0)
    for symbol, _, _, size in elf.symbols():
        if (name := short_name(symbol)) in parts:
            parts[name].code = max(parts[name].code, size)
    return parts


def amd_parts(assembly):
    parts = {}
    for text in re.split(r"; -- Begin function ", assembly)[1:]:
        name = short_name(text.split(None, 1)[0])
        if name is None:
            continue
        note = {key: int(value) for key, value in re.findall(r"^; (\w+)(?: =|:) (\d+)", text, re.MULTILINE)}
        spilled = sum(int(n) for n in re.findall(r"; (\d+)-byte Folded Spill", text))
        part = parts.setdefault(name, Part(name))
        taken = (note["TotalNumVgprs"], note["TotalNumSgprs"], note["ScratchSize"], spilled, note.get("LDSByteSize", 0),
                 note["codeLenInByte"])
        part.vector, part.scalar, part.stack, part.spilled, part.shared, part.code = map(
            max, (part.vector, part.scalar, part.stack, part.spilled, part.shared, part.code), taken)
    # A kernel's stack includes that of the deepest body.
    deepest = max((part.stack for part in parts.values() if not part.is_kernel), default=0)
    parts[RESIDENT].stack -= deepest
    return parts


def read_parts(isa, path):
    with open(path, "rb") as f:
        elf = Elf(f.read())
    if isa.startswith("sm_"):
        logs = sorted(pathlib.Path(path + ".parts").glob("*.log"))
        parts = nvidia_parts(elf, "\n".join(log.read_text() for log in logs), pathlib.Path(path + ".log").read_text())
    else:
        parts = amd_parts(pathlib.Path(path + ".s").read_text())
    parts[RESIDENT].shared += elf.word("plow_carried", SHARED_WORD)
    return sorted(parts.values(), key=lambda part: (not part.is_kernel, part.name))


def over_budget(isa, parts):
    """A sentence for each part that takes too much."""
    most_registers, most_shared = LIMITS[isa]
    for part in parts:
        allowed = SPILL_OF_KERNEL[isa] if part.is_kernel else SPILL_OF_BODY[isa]
        if part.spilled > allowed:
            yield f"{isa}: {part.name} spills {part.spilled} bytes of registers a thread; {allowed} are allowed"
        if part.vector > most_registers:
            yield f"{isa}: {part.name} takes {part.vector} registers; {isa} has {most_registers} for a thread"
        if part.shared > most_shared:
            yield f"{isa}: {part.name} takes {part.shared} bytes of shared memory; {isa} has {most_shared}"


def main(arguments):
    faults = []
    quiet = arguments[:1] == ["--quiet"]
    show = (lambda line: None) if quiet else print
    show("| ISA | kernel or body | registers | scalar | stack | spilled | shared | code |")
    show("|---|---|---|---|---|---|---|---|")
    for argument in arguments[quiet:]:
        isa, path = argument.split("=", 1)
        parts = read_parts(isa, path)
        for part in parts:
            show(f"| {isa} | {part.name} | {part.vector or '-'} | {part.scalar or '-'} | {part.stack} | "
                 f"{part.spilled} | {part.shared or '-'} | {part.code} |")
        faults += over_budget(isa, parts)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
