#!/usr/bin/env python3
"""Each fault that check_layers.py is there for is found in a small tree that has it, and only there."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layers  # noqa: E402

CLEAN = {
    "src/README.md": "| [`base/`](base) | errors |\n| `ops/` | operators |\n",
    "src/CMakeLists.txt": "plow_library(base)\nplow_library(ops_tile FOLDER ops DEPENDS base)\nplow_library(ops)\n",
    "src/base/error.h": "#include <string>\n",
    "src/ops/add.cpp": '#include "base/error.h"\nint workers = 2;\n',
    "tests/golden/text.md": "TO" + "DO of somebody else\n",
}


class CheckLayers(unittest.TestCase):
    def faults_with(self, changes):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **changes}.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                    f.write(text)
            return list(check_layers.faults(root))

    def assert_fault(self, changes, start):
        found = self.faults_with(changes)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(start), found[0])

    def test_a_clean_tree_has_no_fault(self):
        self.assertEqual(self.faults_with({}), [])

    def test_a_hidden_folder_is_not_looked_into(self):
        self.assertEqual(self.faults_with({".scratch/a.md": "see /wo" + "rk/main\n", "src/.cache/a.h": ""}), [])

    def test_a_folder_that_nobody_describes_is_found(self):
        self.assert_fault({"src/extra/a.h": ""}, "src/README.md:1: describes")

    def test_an_order_other_than_that_of_the_build_is_found(self):
        readme = "| `ops/` | operators |\n| `base/` | errors |\n"
        self.assert_fault({"src/README.md": readme}, "src/README.md:1: the order is ops base, but")

    def test_a_described_folder_that_is_not_built_is_found(self):
        self.assert_fault({"src/CMakeLists.txt": "plow_library(base)\n"}, "src/README.md:1: the order is base ops, but")

    def test_an_include_without_a_folder_is_found(self):
        self.assert_fault({"src/ops/mul.cpp": '#include "add.h"\n'}, "src/ops/mul.cpp:1: #include")

    def test_the_environment_read_by_a_library_is_found(self):
        self.assert_fault({"src/ops/mul.cpp": '\nauto x = std::getenv("X");\n'}, "src/ops/mul.cpp:2: reads")

    def test_a_path_of_the_workplace_is_found(self):
        self.assert_fault({"docs/a.md": "see ../" + "shared/design\n"}, "docs/a.md:1: mentions")
        self.assert_fault({"docs/a.md": "see /wo" + "rk/main\n"}, "docs/a.md:1: mentions")

    def test_work_left_for_later_is_found(self):
        self.assert_fault({"apps/main.cpp": "// TO" + "DO: rest\n"}, "apps/main.cpp:1: leaves")

    def test_a_file_that_is_too_long_is_found(self):
        self.assert_fault({"src/ops/mul.cpp": "//\n" * 600}, "src/ops/mul.cpp:601: longer")

    FUSED = {"src/abi/ops.def": "PLOW_OP(17, Scale, scale)\nPLOW_FUSED(30, LinearAdd, linear_add)  // x\n",
             "src/README.md": CLEAN["src/README.md"] + "| `abi/` | numbers |\n| `models/` | graphs |\n| `rewrite/` | rules |\n",
             "src/CMakeLists.txt": CLEAN["src/CMakeLists.txt"] + "plow_library(abi)\nplow_library(models)\nplow_library(rewrite)\n",
             "src/abi/op.h": "case Op::kLinearAdd: return 2;\n", "src/rewrite/a.cpp": "b.add(Op::kLinearAdd, {x});\n",
             "src/models/m.cpp": "b.add(Op::kScale, {x});\n"}

    def test_a_fused_operator_may_be_made_by_the_rewriter(self):
        self.assertEqual(self.faults_with(self.FUSED), [])

    def test_a_fused_operator_that_a_model_names_is_found(self):
        made = {**self.FUSED, "src/models/m.cpp": "int a;\nb.add(\n    Op::kLinearAdd, {x});\n"}
        self.assert_fault(made, "src/models/m.cpp:3: Op::kLinearAdd")
        named = {**self.FUSED, "apps/main.cpp": "auto op = Op::kLinearAdd;\n"}
        self.assert_fault(named, "apps/main.cpp:1: Op::kLinearAdd")

    def test_a_fused_operator_that_a_library_of_operators_builds_is_found(self):
        for line in ("node.op = Op::kLinearAdd;\n", "builder.add(Op::kLinearAdd, {x});\n", "Node{.op = Op::kLinearAdd};\n"):
            self.assert_fault({**self.FUSED, "src/ops/a.cpp": line}, "src/ops/a.cpp:1: Op::kLinearAdd")
        self.assertEqual(self.faults_with({**self.FUSED, "src/ops/a.cpp": "if (node.op == Op::kLinearAdd) return;\n"}), [])

    def test_a_test_may_build_any_operator(self):
        line = "b.add(Op::kLinearAdd, {x});\n"
        self.assertEqual(self.faults_with({**self.FUSED, "src/ops/a_test.cpp": line, "src/models/testing/m.h": line}), [])


if __name__ == "__main__":
    unittest.main()
