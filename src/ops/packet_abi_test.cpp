// docs/packet-abi.md is what the headers of abi/ and the operators' definitions say. When it differs, read
// the difference as you would read code, and copy the text that the test wrote.
#include "abi/packet.h"
#include "ops/def.h"
#include "ops/tile_rule.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace plow {
namespace {

struct Field {
  const char* name;
  size_t offset, bytes;
};

std::string field_table(std::initializer_list<Field> fields) {
  std::string text = "| bytes | field |\n|---|---|\n";
  for (const Field& field : fields)
    text += fmt::format("| {} to {} | {} |\n", field.offset, field.offset + field.bytes - 1, field.name);
  return text;
}

#define PLOW_FIELD(Struct, name) \
  { #name, offsetof(Struct, name), sizeof(Struct::name) }

std::string layouts() {
  std::string text = fmt::format("## Packet, {} bytes\n", sizeof(Packet));
  text += field_table(
      {PLOW_FIELD(Packet, body), PLOW_FIELD(Packet, flags), PLOW_FIELD(Packet, row_kind),
       PLOW_FIELD(Packet, n_waits), PLOW_FIELD(Packet, n_signals), PLOW_FIELD(Packet, variant),
       PLOW_FIELD(Packet, col_first), PLOW_FIELD(Packet, col_count), PLOW_FIELD(Packet, col_stride),
       PLOW_FIELD(Packet, row_first), PLOW_FIELD(Packet, row_stride), PLOW_FIELD(Packet, operand),
       PLOW_FIELD(Packet, wait_first), PLOW_FIELD(Packet, signal_first), PLOW_FIELD(Packet, immediate),
       PLOW_FIELD(Packet, tile_cols)});
  text += fmt::format("\n## Wait, {} bytes\n", sizeof(Wait));
  text += field_table({PLOW_FIELD(Wait, counter), PLOW_FIELD(Wait, per_row_tile), PLOW_FIELD(Wait, constant),
                       PLOW_FIELD(Wait, rows), PLOW_FIELD(Wait, band), PLOW_FIELD(Wait, reserved)});
  text += fmt::format("\n## Signal, {} bytes\n", sizeof(Signal));
  text += field_table({PLOW_FIELD(Signal, counter), PLOW_FIELD(Signal, band), PLOW_FIELD(Signal, scope),
                       PLOW_FIELD(Signal, reserved)});
  text += fmt::format("\n## Stream entry, {} bytes\n", sizeof(StreamEntry));
  text += field_table({PLOW_FIELD(StreamEntry, offset), PLOW_FIELD(StreamEntry, bytes),
                       PLOW_FIELD(StreamEntry, kv), PLOW_FIELD(StreamEntry, packet)});
  return text;
}

std::string operator_line(Op op) {
  const OpDef& def = op_def(op);
  std::string immediates;
  for (const AttributeDef& attribute : def.attributes) {
    immediates += fmt::format("{}{} {}", immediates.empty() ? "" : ", ", attribute.name,
                              attribute.kind == AttributeKind::kU32 ? "u32" : "f32");
  }
  std::string matrices;
  for (uint32_t i = 0; i < def.n_inputs; ++i) {
    if ((matrix_inputs(op) >> i & 1) != 0) matrices += fmt::format("{}{}", matrices.empty() ? "" : ", ", i);
  }
  return fmt::format("| {} | {} | {} | {} | {} | {} |\n", static_cast<uint32_t>(op), op_name(op),
                     def.n_inputs, matrices, immediates, is_fused(op) ? "fused" : "");
}

std::string expected_text() {
  std::string text =
      "# Packets in bytes\n"
      "Generated from `src/abi` and the operators' definitions by a test of `src/ops`, which writes it into "
      "the "
      "build folder; do not\n"
      "edit. What the fields mean is said where they are declared (`src/abi/packet.h`), what operators "
      "compute in\n"
      "`src/ops/README.md`. Everything is little-endian.\n\n";
  text += layouts();
  text +=
      "\n## Operators\n"
      "Operands are the inputs in order, then the output. Inputs that are matrices lie in "
      "`Layout::kRows16Pairs`, or where their dtype is of blocks in `Layout::kRows16Blocks`.\n\n"
      "| body | name | inputs | matrices | immediates, from 0 | |\n|---|---|---|---|---|---|\n";
#define PLOW_OP(number, Name, text_) text += operator_line(Op::k##Name);
#include "abi/ops.def"
  text += "\nProtocol packets, without operands:\n\n| body | name |\n|---|---|\n";
#define PLOW_PROTOCOL(number, Name, text_) \
  text += fmt::format("| {} | {} |\n", static_cast<uint32_t>(Op::k##Name), op_name(Op::k##Name));
#include "abi/ops.def"
  return text;
}

TEST(PacketAbi, TheDocumentIsWhatTheCodeSays) {
  const std::string made = std::string(PLOW_BINARY_DIR) + "/packet-abi.md";
  std::ofstream(made) << expected_text();
  std::stringstream found;
  found << std::ifstream(std::string(PLOW_SOURCE_DIR) + "/docs/packet-abi.md").rdbuf();
  EXPECT_EQ(found.str(), expected_text())
      << "read the difference, and copy " << made << " to docs/packet-abi.md";
}

}  // namespace
}  // namespace plow
