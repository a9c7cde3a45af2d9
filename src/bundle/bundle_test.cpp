#include "bundle/bundle.h"

#include "abi/step.h"
#include "base/testing/temp_dir.h"
#include "bundle/disassemble.h"
#include "bundle/testing/tables.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

namespace plow {
namespace {

constexpr uint32_t kHidden = 32;
constexpr uint32_t kVocab = 48;

// embed -> rope table, kv append -> gather -> linear -> sample, on two workers.
ProgramTables small_program(uint32_t max_rows) {
  ProgramTables program;
  program.entry.max_rows = program.entry.max_samples = max_rows;
  program.entry.token_row_tile = program.entry.sample_row_tile = 2;
  program.entry.n_counters = 12;
  program.entry.arena_bytes = 64 * 1024;
  program.entry.predicted_ns = 12.5;
  program.tensors = {
      matrix(Space::kTape, 0, Rows::kFixed, kVocab, kHidden),               // 0 the embedding
      column(StepColumn::kTokenIds, Rows::kTokens, max_rows),               // 1
      matrix(Space::kArena, 0, Rows::kTokens, max_rows, kHidden),           // 2 its rows
      column(StepColumn::kSampleRows, Rows::kSamples, max_rows),            // 3
      matrix(Space::kArena, 16 * 1024, Rows::kSamples, max_rows, kHidden),  // 4 those sampled
      matrix(Space::kArena, 32 * 1024, Rows::kSamples, max_rows, kVocab),   // 5 logits
      column(StepColumn::kSampled, Rows::kSamples, max_rows),               // 6
      matrix(Space::kKv, 0, Rows::kFixed, 1, kHidden),                      // 7
  };
  program.tensors[0].source = 0;
  program.tensors[7].layout = Layout::kKvBlocks;
  program.tensors[7].row_stride = 0;
  program.tensors[7].bytes = 2 * kHidden * 8 * 4;
  program.packets = {
      operation(Op::kEmbed, Rows::kTokens, {0, 1, 2}, 16, 0, 2),
      operation(Op::kKvAppend, Rows::kTokens, {2, 2, 7, 7}, kHidden, 0, 1),
      operation(Op::kLinear, Rows::kSamples, {4, 0, 5}, 16, 0, 3),
      operation(Op::kGatherRows, Rows::kSamples, {2, 3, 4}, 16, 0, 2),
      operation(Op::kSample, Rows::kSamples, {5, 6}, kVocab, 0, 1),
  };
  program.packets[1].immediate[0] = 16;
  program.packets[3].n_waits = 1;
  program.packets[2].wait_first = 1;
  program.packets[2].n_waits = 1;
  program.packets[2].n_signals = 1;
  program.packets[0].signal_first = 1;
  program.packets[0].n_signals = 1;
  program.waits = {{.counter = 4,
                    .per_row_tile = 3,
                    .constant = 1,
                    .rows = Rows::kTokens,
                    .band = Band::kNone,
                    .reserved = 0},
                   {.counter = 5,
                    .per_row_tile = 0,
                    .constant = 2,
                    .rows = Rows::kFixed,
                    .band = Band::kRow,
                    .reserved = 0}};
  program.signals = {{.counter = 5, .band = Band::kRow, .scope = 0, .reserved = 0},
                     {.counter = 4, .band = Band::kNone, .scope = 0, .reserved = 0}};
  program.stream = {{.offset = 64, .bytes = 128, .kv = 0, .packet = 0},
                    {.offset = 7, .bytes = 0, .kv = 1, .packet = 1}};
  program.workers = {{.first_packet = 0, .n_packets = 3, .first_stream = 0, .n_stream = 1},
                     {.first_packet = 3, .n_packets = 2, .first_stream = 1, .n_stream = 1}};
  return program;
}

BundleTables small_bundle() {
  BundleTables tables;
  tables.header.isa = Isa::kX86_64;
  tables.header.n_workers = 2;
  tables.header.tape_bytes = uint64_t{kVocab} * kHidden * 4;
  tables.header.vocab = kVocab;
  tables.header.hidden = kHidden;
  tables.header.n_layers = 1;
  tables.header.max_context = 100;
  tables.header.max_slots = 3;
  tables.header.kv_dtype = DType::kF32;
  tables.header.scratch_bytes = 4000;
  tables.kv_groups = {
      {.window = 0, .block_tokens = 8, .block_bytes = 2 * kHidden * 8 * 4, .n_layers = 1, .reserved = 0}};
  tables.sources = {{.name = "model.embed_tokens.weight",
                     .tape_offset = 0,
                     .tape_bytes = 64,
                     .digest_low = 1,
                     .digest_high = 2}};
  tables.programs = {small_program(3), small_program(8)};
  tables.graph_text = "%0 = step_input\n";
  tables.rewrite_log = "nothing fired\n";
  tables.build_record = "{}";
  return tables;
}

std::string message_of(std::vector<std::byte> bytes) {
  const auto bundle = BundleFile::from_bytes(std::move(bytes));
  return bundle.ok() ? "" : bundle.error().message;
}

std::string message_of(const BundleTables& tables) { return message_of(serialise_bundle(tables)); }

TEST(Bundle, ReadsBackWhatWasWritten) {
  const BundleTables tables = small_bundle();
  const auto bytes = serialise_bundle(tables);
  const auto bundle = BundleFile::from_bytes(bytes);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message;
  ASSERT_EQ(bundle->programs().size(), 2u);
  const ProgramView& second = bundle->programs()[1];
  EXPECT_EQ(second.entry->max_rows, 8u);
  ASSERT_EQ(second.packets_of(1).size(), 2u);
  EXPECT_EQ(second.packets_of(1)[0].body, static_cast<uint16_t>(Op::kGatherRows));
  EXPECT_EQ(second.tensors[5].cols, kVocab);
  EXPECT_EQ(bundle->source_name(bundle->sources()[0]), "model.embed_tokens.weight");
  EXPECT_EQ(bundle->graph_text(), "%0 = step_input\n");
  EXPECT_EQ(bundle->rewrite_log(), "nothing fired\n");
  EXPECT_EQ(bundle->build_record(), "{}");
  EXPECT_EQ(bundle->header().max_slots, 3u);
}

TEST(Bundle, SameTablesGiveTheSameBytesAndBytesGiveTheTablesBack) {
  const auto bytes = serialise_bundle(small_bundle());
  EXPECT_EQ(bytes, serialise_bundle(small_bundle()));
  const auto bundle = BundleFile::from_bytes(bytes);
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ(serialise_bundle(tables_of(*bundle)), bytes);
  for (const Section& section : std::span(bundle->header().sections).first(bundle->header().n_sections)) {
    EXPECT_EQ(section.offset % 64, 0u);
  }
}

TEST(Bundle, OpensAFileAndNamesItWhenItIsWrong) {
  const TempDir scratch;
  const std::filesystem::path& directory = scratch.path();
  auto bytes = serialise_bundle(small_bundle());
  const auto write = [&] {
    std::ofstream(directory / "model.pkt", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  };
  write();
  auto bundle = BundleFile::open(directory / "model.pkt");
  ASSERT_TRUE(bundle.ok());
  const BundleFile moved = std::move(*bundle);
  EXPECT_EQ(moved.programs()[0].packets.size(), 5u);
  EXPECT_EQ(serialise_bundle(tables_of(moved)), bytes);
  bytes.pop_back();
  write();
  const auto cut = BundleFile::open(directory / "model.pkt");
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("model.pkt: the bundle should have"), std::string::npos)
      << cut.error().message;
}

TEST(Bundle, EveryCutAndEveryFlippedBitIsAnError) {
  const auto bytes = serialise_bundle(small_bundle());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_NE(message_of(std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size))),
              "")
        << size;
  }
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto altered = bytes;
    altered[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    ASSERT_NE(message_of(std::move(altered)), "") << "bit " << bit;
  }
  auto extended = bytes;
  extended.resize(bytes.size() + 64);
  EXPECT_NE(message_of(std::move(extended)), "");
}

// With the digest made right again, what remains is an error or a bundle that says exactly what its bytes
// say.
TEST(Bundle, SealedMutantsAreErrorsOrReadAsTheyStand) {
  const auto bytes = serialise_bundle(small_bundle());
  std::mt19937_64 random(7);
  size_t accepted = 0;
  for (int i = 0; i < 30000; ++i) {
    auto mutant = bytes;
    for (uint64_t n = random() % 3 + 1; n > 0; --n)
      mutant[random() % mutant.size()] = static_cast<std::byte>(random());
    seal_bundle(mutant);
    const auto bundle = BundleFile::from_bytes(mutant);
    if (!bundle.ok()) continue;
    ++accepted;
    for (const ProgramView& program : bundle->programs()) EXPECT_FALSE(disassemble(program).empty());
    EXPECT_GT(plan_memory(*bundle, bundle->header().max_slots, bundle->header().max_context).total(), 0u);
    // Padding between sections is the only thing that tables do not hold.
    EXPECT_EQ(serialise_bundle(tables_of(*bundle)).size(), mutant.size());
  }
  EXPECT_GT(accepted, 1000u);  // digests, nodes, immediates: not all bytes are indices
}

struct Damage {
  const char* message;
  std::function<void(BundleTables&)> apply;
};

TEST(Bundle, EveryIndexOutOfRangeIsNamed) {
  const auto last = [](BundleTables& t) -> ProgramTables& { return t.programs.back(); };
  const std::vector<Damage> damages = {
      {"instruction set 9", [](auto& t) { t.header.isa = static_cast<Isa>(9); }},
      {"0 workers", [](auto& t) { t.header.n_workers = 0; }},
      {"worker 2: its lists begin", [](auto& t) { t.header.n_workers = 3; }},
      {"a tape of", [](auto& t) { t.header.tape_bytes = uint64_t{1} << 60; }},
      {"77 is no dtype", [](auto& t) { t.header.kv_dtype = static_cast<DType>(77); }},
      {"reserved", [](auto& t) { t.header.reserved1 = 1; }},
      {"a vocabulary of 0", [](auto& t) { t.header.vocab = 0; }},
      {"no programs", [](auto& t) { t.programs.clear(); }},
      {"KV group 0: window", [](auto& t) { t.kv_groups[0].block_tokens = 0; }},
      {"KV group 0: 3 slots", [](auto& t) { t.kv_groups[0].block_bytes = uint64_t{1} << 55; }},
      {"source tensor 0: its bytes", [](auto& t) { t.sources[0].tape_offset = 1u << 20; }},
      {"program 1: up to 0 rows", [&](auto& t) { last(t).entry.max_rows = 0; }},
      {"program 1: row tiles of 0", [&](auto& t) { last(t).entry.token_row_tile = 0; }},
      {"program 1: an arena of", [&](auto& t) { last(t).entry.predicted_ns = -1; }},
      {"worker 1: its lists begin", [&](auto& t) { last(t).workers[1].first_packet = 2; }},
      {"the workers' lists hold 4 packets", [&](auto& t) { last(t).workers[1].n_packets = 1; }},
      {"tensor 2: dtype", [&](auto& t) { last(t).tensors[2].dtype = static_cast<DType>(9); }},
      {"tensor 2: dtype", [&](auto& t) { last(t).tensors[2].row_kind = static_cast<Rows>(3); }},
      {"tensor 2: memory space", [&](auto& t) { last(t).tensors[2].space = static_cast<Space>(9); }},
      {"tensor 2: layout", [&](auto& t) { last(t).tensors[2].layout = static_cast<Layout>(9); }},
      {"tensor 0: 32 columns of q8_0 in layout 1: blocks lie whole",
       [&](auto& t) { last(t).tensors[0].dtype = DType::kQ8_0; }},
      {"tensor 0: 32 columns of f32 in layout 6: blocks lie whole",
       [&](auto& t) { last(t).tensors[0].layout = Layout::kRows16Blocks; }},
      {"tensor 2: 32 columns of q4_0 in layout 6: blocks lie whole in the tape",
       [&](auto& t) {
         last(t).tensors[2].dtype = DType::kQ4_0, last(t).tensors[2].layout = Layout::kRows16Blocks;
       }},
      {"48 x 32 q8_0 need 1632 bytes",
       [&](auto& t) {
         TensorEntry& table = last(t).tensors[0];
         table.dtype = DType::kQ8_0, table.layout = Layout::kRows16Blocks, table.row_stride = 0,
         table.bytes = 1631;
       }},
      {"offset 2 is no multiple of 32 bytes",
       [&](auto& t) {
         TensorEntry& table = last(t).tensors[0];
         table.dtype = DType::kQ8_0, table.layout = Layout::kRows16Blocks, table.row_stride = 0,
         table.offset = 2;
       }},
      {"tensor 2: KV blocks", [&](auto& t) { last(t).tensors[2].layout = Layout::kKvBlocks; }},
      {"tensor 2: 7 rows", [&](auto& t) { last(t).tensors[2].rows = 7; }},
      {"tensor 2: bytes [", [&](auto& t) { last(t).tensors[2].offset = 64 * 1024 - 4; }},
      {"tensor 2: 64 bytes between", [&](auto& t) { last(t).tensors[2].row_stride = 64; }},
      {"need", [&](auto& t) { last(t).tensors[2].bytes -= 1; }},
      {"no multiple", [&](auto& t) { last(t).tensors[2].offset = 2; }},
      {"tensor 0: source 5", [&](auto& t) { last(t).tensors[0].source = 5; }},
      {"tensor 7: KV group 4", [&](auto& t) { last(t).tensors[7].kv_group = 4; }},
      {"step column 9", [&](auto& t) { last(t).tensors[1].offset = 9; }},
      {"wait 0: a field", [&](auto& t) { last(t).waits[0].band = static_cast<Band>(4); }},
      {"its threshold", [&](auto& t) { last(t).waits[0].per_row_tile = 0xffffffff; }},
      {"signal 1: a field", [&](auto& t) { last(t).signals[1].scope = 2; }},
      {"packet 0: no body has number 99", [&](auto& t) { last(t).packets[0].body = 99; }},
      {"packet 0: no body has number 1", [&](auto& t) { last(t).packets[0].body = 1; }},
      {"packet 0 (embed): row kind 9", [&](auto& t) { last(t).packets[0].row_kind = 9; }},
      {"row stride 0", [&](auto& t) { last(t).packets[0].row_stride = 0; }},
      {"operand 8 of 8", [&](auto& t) { last(t).packets[0].operand[2] = 8; }},
      {"packet 3 (gather_rows): waits [2, +1)", [&](auto& t) { last(t).packets[3].wait_first = 2; }},
      {"packet 0 (embed): signals [2, +1)", [&](auto& t) { last(t).packets[0].signal_first = 2; }},
      {"its wait on counter 9 reaches counter 12", [&](auto& t) { last(t).waits[1].counter = 9; }},
      {"its signal on counter 12", [&](auto& t) { last(t).signals[1].counter = 12; }},
      {"2 inputs and an output", [&](auto& t) { last(t).packets[0].operand[1] = kNoTensor; }},
      {"do not fit its definition", [&](auto& t) { last(t).packets[0].operand[1] = 3; }},
      {"do not fit its definition", [&](auto& t) { last(t).packets[1].immediate[0] = 0; }},
      {"do not fit its definition", [&](auto& t) { last(t).packets[2].operand[0] = 5; }},
      {"its row tiles count", [&](auto& t) { last(t).packets[0].row_kind = 2; }},
      {"column tiles 0, +3", [&](auto& t) { last(t).packets[0].col_count = 3; }},
      {"column tiles of 24 columns",
       [&](auto& t) { last(t).packets[2].tile_cols = 24, last(t).packets[2].col_count = 2; }},
      {"a stream entry", [&](auto& t) { last(t).stream[0].bytes = 0x7fffffff; }},
      {"a stream entry", [&](auto& t) { last(t).stream[0].packet = 3; }},
      {"a stream entry", [&](auto& t) { last(t).stream[1].kv = 2; }},
  };
  for (const Damage& damage : damages) {
    BundleTables tables = small_bundle();
    damage.apply(tables);
    const std::string message = message_of(tables);
    EXPECT_NE(message.find(damage.message), std::string::npos)
        << "wanted: " << damage.message << "\ngot: " << message;
  }
}

TEST(Bundle, SectionsThatOverlapOrLeaveTheFileAreRefused) {
  const auto good = serialise_bundle(small_bundle());
  for (size_t i = 0; i < 13; ++i) {
    for (const int64_t shift : {-64, -1, 1, 64}) {
      for (const bool move_offset : {true, false}) {
        auto bytes = good;
        BundleHeader header;
        std::memcpy(&header, bytes.data(), sizeof(header));
        (move_offset ? header.sections[i].offset : header.sections[i].bytes) += static_cast<uint64_t>(shift);
        std::memcpy(bytes.data(), &header, sizeof(header));
        seal_bundle(bytes);
        EXPECT_NE(message_of(std::move(bytes)).find("section '"), std::string::npos);
      }
    }
  }
}

TEST(Plan, CountsEveryByteOfEveryPool) {
  const auto bundle = BundleFile::from_bytes(serialise_bundle(small_bundle()));
  ASSERT_TRUE(bundle.ok());
  const MemoryPlan plan = plan_memory(*bundle, 2, 20);
  EXPECT_EQ(plan.weights, 6144u);
  EXPECT_EQ(plan.arena, 65536u);
  EXPECT_EQ(plan.kv, 2u * 3u * 2048u);  // 20 positions touch 3 blocks of 8
  EXPECT_EQ(plan.counters, 12u * 128u * 3u);
  EXPECT_EQ(plan.scratch, 8192u);
  EXPECT_EQ(plan.step,
            sizeof(StepDescriptor) + 8 * (16 + 12) + 8 * (4 + 96) + 64 * 8 * 8 + 2 * 20 * 4 + 8 + 2 * 3 * 4);
}

// The definition, by looking at every step of every sequence.
uint32_t blocks_by_walking(const KvGroup& group, uint32_t context, uint32_t max_rows) {
  uint32_t most = 0;
  for (uint32_t first = 0; first < context; ++first) {
    for (uint32_t rows = 1; rows <= max_rows && first + rows <= context; ++rows) {
      const uint32_t lowest = group.window == 0 || first + 1 < group.window ? 0 : first - (group.window - 1);
      const uint32_t n = (first + rows - 1) / group.block_tokens - lowest / group.block_tokens + 1;
      most = std::max(most, n);
    }
  }
  return most;
}

TEST(Plan, BlocksOfAWindowAreThoseThatSomeStepTouches) {
  for (const uint32_t window : {0u, 1u, 2u, 7u, 8u, 9u, 16u, 17u, 1000u}) {
    for (const uint32_t block : {1u, 3u, 8u, 16u}) {
      for (const uint32_t rows : {1u, 2u, 5u, 16u}) {
        const KvGroup group{
            .window = window, .block_tokens = block, .block_bytes = 1, .n_layers = 1, .reserved = 0};
        const uint32_t walked = blocks_by_walking(group, 200, rows);
        EXPECT_EQ(blocks_per_sequence(group, 200, rows), walked) << window << " " << block << " " << rows;
      }
    }
  }
}

TEST(Disassemble, SaysWhatAPacketDoes) {
  const BundleTables tables = small_bundle();
  const auto bundle = BundleFile::from_bytes(serialise_bundle(tables));
  ASSERT_TRUE(bundle.ok());
  const ProgramView& program = bundle->programs()[0];
  EXPECT_EQ(format_packet(program, 0),
            "p0 embed rows 0.. cols 0..1 (x16): t0:f32[48,32], t1:u32[T,1] -> t2:f32[T,32]; signals c4");
  EXPECT_EQ(
      format_packet(program, 3),
      "p3 gather_rows rows 0.. cols 0..1 (x16): t2:f32[T,32], t3:u32[S,1] -> t4:f32[S,32]; waits c4 >= 3R+1");
  EXPECT_EQ(format_packet(program, 2),
            "p2 linear rows 0.. cols 0..2 (x16): t4:f32[S,32], t0:f32[48,32] -> t5:f32[S,48]; waits c5[r] >= "
            "2; signals c5[r]");
  const std::string text = disassemble(program);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 8 + 2 + 5);
}

}  // namespace
}  // namespace plow
