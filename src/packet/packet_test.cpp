#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

#include "base/float16.h"
#include "graph/testing/toy_graph.h"
#include "packet/encode.h"

namespace plow {
namespace {

struct Case {
  OpGraph graph;
  TapePlan tape;
  KvPlan kv;
  ProgramTables tables;
};

Case make(const ToyShape& shape, const ProgramShape& program, uint32_t workers) {
  Case c;
  c.graph = toy_graph(shape);
  TileOptions options;
  options.shape = program;
  const TileGraph tiles = tile_graph(c.graph, options);
  const Schedule schedule = schedule_tiles(c.graph, tiles, {workers, &default_part(Isa::kX86_64)});
  c.tape = plan_tape(c.graph, Isa::kX86_64);
  c.kv = plan_kv(c.graph, Isa::kX86_64);
  c.tables = encode_program(c.graph, tiles, schedule, c.tape, c.kv);
  return c;
}

const ProgramShape kFew{16, 16, 16, 16};

TEST(Tape, HoldsEveryWeightOnceAligned) {
  const OpGraph graph = toy_graph();
  const TapePlan plan = plan_tape(graph, Isa::kX86_64);
  std::map<std::string, int> seen;
  uint64_t end = 0;
  for (const TapeTensor& tensor : plan.tensors) {
    EXPECT_EQ(tensor.offset % kTapeAlignment, 0u);
    EXPECT_GE(tensor.offset, end);
    end = tensor.offset + tensor.bytes;
    const Node& node = graph.node(tensor.node);
    if (node.op == Op::kWeight) ++seen[graph.weights[node.leaf].name];
  }
  EXPECT_GE(plan.bytes, end);
  EXPECT_EQ(seen.size(), graph.weights.size());
  for (const auto& [name, count] : seen) EXPECT_EQ(count, 1) << name;
}

// The element (row, col) of a packed matrix, by the layout's definition in abi/tensor.h.
float packed_at(const TapeTensor& tensor, const std::vector<std::byte>& bytes, uint32_t row, uint32_t col) {
  const size_t pairs = (tensor.cols + 1) / 2;
  const size_t element = ((row / 16) * pairs + col / 2) * 32 + (row % 16) * 2 + col % 2;
  if (tensor.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, bytes.data() + element * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, bytes.data() + element * 2, 2);
  return tensor.dtype == DType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits);
}

TEST(Tape, RowGroupsPutEveryElementInItsPlace) {
  std::mt19937 random(1);
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    for (const auto& [rows, cols] : std::vector<std::pair<uint32_t, uint32_t>>{{1, 1}, {16, 2}, {17, 3}, {33, 64}, {48, 7}}) {
      TapeTensor tensor{NodeId(0), 0, 0, rows, cols, dtype, Layout::kRows16Pairs};
      std::vector<float> values(size_t{rows} * cols);
      for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64.0f;  // exact in all three
      std::vector<std::byte> bytes(layout_bytes(tensor.layout, dtype, rows, cols));
      pack_rows(tensor, 0, rows, values.data(), bytes);
      for (uint32_t r = 0; r < (rows + 15) / 16 * 16; ++r) {
        for (uint32_t c = 0; c < (cols + 1) / 2 * 2; ++c) {
          const float expected = r < rows && c < cols ? values[size_t{r} * cols + c] : 0.0f;
          ASSERT_EQ(packed_at(tensor, bytes, r, c), expected) << r << "," << c;
        }
      }
    }
  }
}

// The definition in abi/layout.h, spelled out: chunks of columns, row tiles, atoms, rows, swizzled units.
TEST(Tape, AtomsPutEveryElementInItsPlace) {
  std::mt19937 random(2);
  for (const DType dtype : {DType::kBf16, DType::kF16, DType::kF32}) {
    const uint32_t element = dtype_bytes(dtype), atom_cols = 128 / element;
    for (const auto& [rows, atoms, cut, chunk_atoms] : std::vector<std::array<uint32_t, 4>>{
             {1, 1, 0, 1}, {8, 9, 0, 9}, {17, 3, 5, 3}, {33, 34, 0, 2}, {16, 32, 1, 16}, {24, 17, 3, 1}}) {
      const uint32_t cols = atoms * atom_cols - cut, tiles = (rows + 7) / 8;
      TapeTensor tensor{NodeId(0), 0, 0, rows, cols, dtype, Layout::kAtoms8x128};
      std::vector<float> values(size_t{rows} * cols);
      for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 255) - 127) / 64.0f;
      std::vector<std::byte> bytes(layout_bytes(tensor.layout, dtype, rows, cols));
      ASSERT_EQ(bytes.size(), size_t{tiles} * atoms * 1024);
      pack_rows(tensor, 0, rows / 2, values.data(), bytes);
      pack_rows(tensor, rows / 2, rows - rows / 2, values.data() + size_t{rows / 2} * cols, bytes);
      size_t at = 0;
      for (uint32_t chunk = 0; chunk < atoms / chunk_atoms; ++chunk) {
        for (uint32_t tile = 0; tile < tiles; ++tile) {
          for (uint32_t atom = 0; atom < chunk_atoms; ++atom) {
            for (uint32_t r = 0; r < 8; ++r) {
              for (uint32_t place = 0; place < atom_cols; ++place, at += element) {
                const uint32_t unit = place * element / 16 ^ r, in_unit = place * element % 16 / element;
                const uint32_t row = tile * 8 + r, col = (chunk * chunk_atoms + atom) * atom_cols + unit * 16 / element + in_unit;
                const float expected = row < rows && col < cols ? values[size_t{row} * cols + col] : 0.0f;
                float found = 0;
                uint16_t bits = 0;
                if (element == 4) {
                  std::memcpy(&found, bytes.data() + at, 4);
                } else {
                  std::memcpy(&bits, bytes.data() + at, 2);
                  found = dtype == DType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits);
                }
                ASSERT_EQ(found, expected) << rows << "x" << cols << " row " << row << " column " << col;
              }
            }
          }
        }
      }
    }
  }
}

// The definition in abi/layout.h, spelled out: row groups, blocks of columns, scales, lines of column pairs.
TEST(Tape, RowsOfBlocksPutEveryIntegerAndScaleInItsPlace) {
  std::mt19937 random(3);
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    const bool wide = dtype == DType::kQ8_0;
    const size_t stored = wide ? 34 : 18;
    for (const auto& [rows, cols] : std::vector<std::pair<uint32_t, uint32_t>>{{1, 32}, {16, 64}, {17, 96}, {33, 32}}) {
      const TapeTensor tensor{NodeId(0), 0, 0, rows, cols, dtype, Layout::kRows16Blocks};
      const size_t row_bytes = cols / 32 * stored;
      std::vector<std::byte> blocks(rows * row_bytes);
      for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
      std::vector<std::byte> bytes(layout_bytes(tensor.layout, dtype, rows, cols));
      ASSERT_EQ(bytes.size(), (rows + 15) / 16 * (cols / 32) * 16 * stored);
      const auto some = std::span(blocks).first(rows / 2 * row_bytes);
      pack_blocks(tensor, 0, rows / 2, some, bytes);
      pack_blocks(tensor, rows / 2, rows - rows / 2, std::span(blocks).subspan(some.size()), bytes);
      size_t at = 0;
      for (uint32_t group = 0; group < (rows + 15) / 16; ++group) {
        for (uint32_t block = 0; block < cols / 32; ++block) {
          const auto from = [&](uint32_t r) { return blocks.data() + (group * 16 + r) * row_bytes + block * stored; };
          for (uint32_t r = 0; r < 16; ++r, at += 2) {
            const bool there = group * 16 + r < rows;
            for (size_t i = 0; i < 2; ++i) ASSERT_EQ(bytes[at + i], there ? from(r)[i] : std::byte{0}) << "scale of row " << r;
          }
          for (uint32_t line = 0; line < (wide ? 16u : 8u); ++line) {
            for (uint32_t r = 0; r < 16; ++r) {
              for (uint32_t odd = 0; odd < 2; ++odd, ++at) {
                std::byte expected{0};
                if (group * 16 + r < rows && wide) expected = from(r)[2 + 2 * line + odd];
                if (group * 16 + r < rows && !wide) {
                  // Columns 4 line + odd and two further; GGUF has value i in the low half of byte i, i + 16 in the high one.
                  const auto value = [&](uint32_t i) { return std::to_integer<uint32_t>(from(r)[2 + i % 16]) >> (i < 16 ? 0 : 4) & 15; };
                  expected = static_cast<std::byte>(value(4 * line + odd) | value(4 * line + 2 + odd) << 4);
                }
                ASSERT_EQ(bytes[at], expected) << rows << "x" << cols << " line " << line << " row " << r;
              }
            }
          }
        }
      }
    }
  }
}

TEST(KvPlan, GroupsLayersByWindow) {
  const OpGraph graph = toy_graph({4, 40, 3, 1, 12, 56, 101, 8});
  const KvPlan plan = plan_kv(graph, Isa::kX86_64);
  ASSERT_EQ(plan.groups.size(), 2u);
  EXPECT_EQ(plan.groups[0].window, 0u);
  EXPECT_EQ(plan.groups[1].window, 8u);
  for (const KvGroup& group : plan.groups) {
    EXPECT_EQ(group.n_layers, 2u);
    const uint64_t layer = 2 * 12 * 16 * dtype_bytes(graph.nodes[0].dtype);
    EXPECT_GE(group.block_bytes, 2 * layer / 2);  // at least bf16
  }
  EXPECT_EQ(plan.of_state[0].group, plan.of_state[2].group);
  EXPECT_NE(plan.of_state[0].offset, plan.of_state[2].offset);
}

TEST(Encode, TheStreamHoldsEachMatrixOnce) {
  ToyShape of_blocks{.hidden = 64, .heads = 4, .kv_heads = 2, .head_dim = 16, .ffn = 96, .fused = false, .matrices = DType::kQ4_0};
  for (const auto& [shape, workers] : std::vector<std::pair<ToyShape, uint32_t>>{{{}, 1}, {{}, 2}, {{}, 5}, {of_blocks, 2}}) {
    const Layout layout = layout_of_matrices(Isa::kX86_64, shape.matrices);
    const Case c = make(shape, kFew, workers);
    std::map<uint64_t, uint64_t> streamed;  // by tape tensor offset
    for (const StreamEntry& entry : c.tables.stream) {
      if (entry.kv != 0) continue;
      const auto tensor = std::find_if(c.tape.tensors.begin(), c.tape.tensors.end(), [&](const TapeTensor& t) {
        return entry.offset >= t.offset && entry.offset + entry.bytes <= t.offset + t.bytes;
      });
      ASSERT_NE(tensor, c.tape.tensors.end()) << "a stream entry lies across tensors";
      if (tensor->layout == layout) { streamed[tensor->offset] += entry.bytes; }
    }
    for (const TapeTensor& tensor : c.tape.tensors) {
      if (tensor.layout != layout) continue;
      EXPECT_EQ(streamed[tensor.offset], tensor.bytes) << "node %" << tensor.node.value;
    }
  }
}

TEST(Encode, OperandsAreTheGraphsInOrder) {
  const Case c = make({}, kFew, 2);
  for (const Packet& packet : c.tables.packets) {
    const Op op = static_cast<Op>(packet.body);
    if (is_protocol(op)) continue;
    const OpDef& def = op_def(op);
    for (uint32_t i = 0; i <= def.n_inputs; ++i) ASSERT_LT(packet.operand[i], c.tables.tensors.size());
    for (uint32_t i = def.n_inputs + 1; i < kPacketOperands; ++i) EXPECT_EQ(packet.operand[i], kNoTensor);
    const TensorEntry& output = c.tables.tensors[packet.operand[def.n_inputs]];
    const NodeId node(output.node);
    if (op == Op::kKvAppend) {
      EXPECT_EQ(output.space, Space::kKv);
      continue;
    }
    EXPECT_EQ(c.graph.node(node).op, op);
    const auto inputs = c.graph.inputs_of(node);
    for (uint32_t i = 0; i < def.n_inputs; ++i) {
      const TensorEntry& input = c.tables.tensors[packet.operand[i]];
      EXPECT_TRUE(input.space == Space::kKv || input.node == inputs[i].value);
    }
    EXPECT_EQ(0, std::memcmp(packet.immediate, c.graph.node(node).attributes.data(), sizeof(packet.immediate)));
  }
}

TEST(Encode, RoundTripsThroughABundle) {
  for (const uint32_t workers : {1u, 2u, 3u}) {
    for (const ProgramShape& program : {kFew, ProgramShape{100, 16, 16, 16}}) {
      const Case c = make({4, 40, 3, 1, 12, 56, 101, 8}, program, workers);
      BundleTables tables;
      tables.header.isa = Isa::kX86_64;
      tables.header.n_workers = workers;
      tables.header.tape_bytes = c.tape.bytes;
      tables.header.vocab = c.graph.vocab;
      tables.header.max_context = 64;
      tables.header.max_slots = 4;
      tables.header.kv_dtype = DType::kF32;  // of the toy's states
      tables.header.n_layers = c.graph.n_layers;
      tables.header.hidden = c.graph.hidden;
      tables.header.scratch_bytes = 4096;
      tables.programs.push_back(c.tables);
      tables.kv_groups = c.kv.groups;
      for (const TapeTensor& tensor : c.tape.tensors) tables.sources.push_back({"t", tensor.offset, tensor.bytes, 0, 0});
      const auto bundle = BundleFile::from_bytes(serialise_bundle(tables));
      ASSERT_TRUE(bundle.ok()) << bundle.error().message;
      EXPECT_EQ(bundle->programs()[0].packets.size(), c.tables.packets.size());
    }
  }
}

}  // namespace
}  // namespace plow
