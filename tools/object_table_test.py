#!/usr/bin/env python3
"""What compilers say of bodies is read rightly, and each kind of excess is named."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from object_table import Part, amd_parts, nvidia_parts, over_budget  # noqa: E402

# As ptxas -v of CUDA 13.0 prints it of the parts of an object, and nvlink -v of the whole.
PTXAS = """ptxas info    : 204 bytes gmem
ptxas info    : Compiling entry function 'plow_resident' for 'sm_90a'
ptxas info    : Function properties for plow_resident
    256 bytes stack frame, 44 bytes spill stores, 48 bytes spill loads
ptxas info    : Used 68 registers, used 2 barriers
ptxas info    : Function properties for _ZN4plow6nvidia16attention_bodyERKNS_11BodyContextERKNS_6PacketEj
    16 bytes stack frame, 12 bytes spill stores, 12 bytes spill loads
ptxas info    : Function properties for _ZN45_INTERNAL_x_cu_f26e436f4plow3dev22attend_tiles_team_bodyINS0_6nvidia5BlockEEv
    8 bytes stack frame, 72 bytes spill stores, 72 bytes spill loads
ptxas info    : Function properties for __internal_trig_reduction_slowpathd
    40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
NVLINK = """nvlink info    : 208 bytes gmem
nvlink info    : Function properties for 'plow_resident':
nvlink info    : used 255 registers, used 2 barriers, 464 stack, 1040 bytes smem, 536 bytes cmem[0], 12 bytes cmem[2], 0 bytes lmem
"""

# As clang 22 writes it, all but the notes left out.
ASSEMBLY = """	.p2align	2                               ; -- Begin function _ZN4plow3devL16linear_team_bodyINS_3amd5GroupEEv
	scratch_store_dword off, v40, s32 ; 4-byte Folded Spill
	scratch_store_dwordx2 off, v[41:42], s32 offset:4 ; 8-byte Folded Spill
	scratch_load_dword v40, off, s32 ; 4-byte Folded Reload
; Function info:
; codeLenInByte = 36224
; TotalNumSgprs: 102
; NumVgprs: 248
; TotalNumVgprs: 260
; ScratchSize: 12
	.text                                   ; -- Begin function plow_resident
; Kernel info:
; codeLenInByte = 10732
; TotalNumSgprs: 108
; TotalNumVgprs: 342
; ScratchSize: 140
; LDSByteSize: 128 bytes/workgroup (compile time only)
"""


class Symbols:
    """What is read of an ELF file."""

    def symbols(self):
        return [("plow_resident", 1, 0, 5000),
                ("_ZN4plow6nvidia16attention_bodyERKNS_11BodyContextERKNS_6PacketEj", 1, 0, 700)]


class ObjectTable(unittest.TestCase):
    def test_what_ptxas_says_is_read(self):
        self.assertEqual(nvidia_parts(Symbols(), PTXAS, NVLINK), {
            "plow_resident": Part("plow_resident", vector=255, stack=256, spilled=44, shared=16, code=5000),
            "attention": Part("attention", stack=16, spilled=12, code=700),
            "attend_tiles": Part("attend_tiles", stack=8, spilled=72),
        })

    def test_what_clang_notes_is_read(self):
        self.assertEqual(amd_parts(ASSEMBLY), {
            "plow_resident": Part("plow_resident", 342, 108, stack=128, shared=128, code=10732),
            "linear": Part("linear", 260, 102, stack=12, spilled=12, code=36224),
        })

    def assert_over(self, isa, part, end):
        sentences = list(over_budget(isa, [Part("add", vector=40), part]))
        self.assertEqual(len(sentences), 1, sentences)
        self.assertTrue(sentences[0].startswith(f"{isa}: {part.name} ") and sentences[0].endswith(end), sentences[0])

    def test_what_is_within_its_budget_passes(self):
        for isa in "sm_90a", "sm_120", "gfx942", "gfx950":
            self.assertEqual(list(over_budget(isa, [Part("plow_resident", vector=255, spilled=44), Part("add")])), [])

    def test_a_body_that_spills_is_named(self):
        self.assert_over("sm_90a", Part("linear", spilled=76), "72 are allowed")
        self.assert_over("gfx942", Part("linear", spilled=36), "32 are allowed")

    def test_a_kernel_that_spills_much_is_named(self):
        self.assert_over("sm_90a", Part("plow_resident", spilled=132), "128 are allowed")
        self.assert_over("sm_120", Part("plow_resident", spilled=148), "144 are allowed")

    def test_too_many_registers_are_named(self):
        self.assert_over("gfx950", Part("attention", vector=513), "has 512 for a thread")

    def test_too_much_shared_memory_is_named(self):
        self.assert_over("sm_120", Part("plow_resident", shared=101377), "has 101376")
        self.assert_over("gfx942", Part("plow_resident", shared=65537), "has 65536")


if __name__ == "__main__":
    unittest.main()
