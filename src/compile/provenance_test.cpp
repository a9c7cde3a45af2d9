#include "compile/provenance.h"

#include "bundle/disassemble.h"
#include "compile/testing_bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace plow {
namespace {

// The counters that a packet touches in a step with R row tiles, straight from the definition in
// abi/packet.h.
std::set<uint32_t> counters(const ProgramView& program, uint32_t packet, uint32_t counter, Band band,
                            uint32_t max_tiles) {
  std::set<uint32_t> result;
  const Packet& p = program.packets[packet];
  if (band == Band::kNone) return {counter};
  for (uint32_t r = p.row_first; r < max_tiles; r += p.row_stride) result.insert(counter + r);
  return result;
}

uint32_t most_tiles(const ProgramView& program, const Packet& packet) {
  const ProgramEntry& e = *program.entry;
  if (static_cast<Rows>(packet.row_kind) == Rows::kTokens)
    return (e.max_rows + e.token_row_tile - 1) / e.token_row_tile;
  if (static_cast<Rows>(packet.row_kind) == Rows::kSamples)
    return (e.max_samples + e.sample_row_tile - 1) / e.sample_row_tile;
  return 1;
}

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(), [&](uint32_t x) { return b.contains(x); });
}

TEST(CounterIndex, FindsThePacketsThatTouchTheCountersOfAWait) {
  const ToyBundle bundle = toy_bundle(3);
  for (const ProgramView& program : bundle.file.programs()) {
    const CounterIndex index(program);
    for (uint32_t p = 0; p < program.packets.size(); ++p) {
      const Packet& packet = program.packets[p];
      for (const Wait& wait : program.waits.subspan(packet.wait_first, packet.n_waits)) {
        std::vector<uint32_t> expected;
        // A packet of row tiles in steps of row_stride may still be listed beside those that take turns with
        // it.
        const auto awaited = counters(program, p, wait.counter, wait.band, most_tiles(program, packet));
        for (uint32_t s = 0; s < program.packets.size(); ++s) {
          const Packet& other = program.packets[s];
          for (const Signal& signal : program.signals.subspan(other.signal_first, other.n_signals)) {
            if (meet(awaited, counters(program, s, signal.counter, signal.band, most_tiles(program, other))))
              expected.push_back(s);
          }
        }
        expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
        EXPECT_EQ(index.signallers(p, wait), expected) << "packet " << p;
        EXPECT_FALSE(expected.empty()) << "packet " << p << " waits for a counter that nobody signals";
      }
    }
  }
}

TEST(CounterIndex, WaitersAndSignallersAreTheSameRelation) {
  const ToyBundle bundle = toy_bundle(2);
  const ProgramView& program = bundle.file.programs()[1];
  const CounterIndex index(program);
  std::set<std::pair<uint32_t, uint32_t>> forwards, backwards;  // signaller, waiter
  for (uint32_t p = 0; p < program.packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    for (const Wait& wait : program.waits.subspan(packet.wait_first, packet.n_waits)) {
      for (const uint32_t s : index.signallers(p, wait)) backwards.emplace(s, p);
    }
    for (const Signal& signal : program.signals.subspan(packet.signal_first, packet.n_signals)) {
      for (const uint32_t w : index.waiters(p, signal)) forwards.emplace(p, w);
    }
  }
  EXPECT_EQ(forwards, backwards);
  EXPECT_FALSE(forwards.empty());
}

TEST(Provenance, EveryPacketComesFromANodeOfItsOperatorWithItsInputs) {
  const ToyBundle bundle = toy_bundle(3);
  for (size_t i = 0; i < bundle.file.programs().size(); ++i) {
    const ProgramView& program = bundle.file.programs()[i];
    const ProgramStages& stages = bundle.stages.programs[i];
    ASSERT_EQ(stages.schedule.tasks.size(), program.packets.size());
    for (uint32_t p = 0; p < program.packets.size(); ++p) {
      const Packet& packet = program.packets[p];
      EXPECT_EQ(worker_of(program, p), stages.schedule.tasks[p].worker);
      const NodeId node = node_of(stages, p);
      EXPECT_EQ(node.valid(), !is_protocol(static_cast<Op>(packet.body)));
      if (!node.valid()) continue;
      EXPECT_EQ(bundle.stages.graph.node(node).op, static_cast<Op>(packet.body));
      const TensorEntry& first_input = program.tensors[packet.operand[0]];
      EXPECT_EQ(first_input.node, bundle.stages.graph.inputs_of(node)[0].value) << "packet " << p;
    }
  }
}

TEST(Provenance, GivesEachNodeItsLineOfTheGraph) {
  const OpGraph graph = toy_graph();
  const auto lines = node_lines(graph);
  ASSERT_EQ(lines.size(), graph.nodes.size());
  for (size_t n = 0; n < lines.size(); ++n) {
    EXPECT_TRUE(lines[n].starts_with("%" + std::to_string(n) + " = " + op_name(graph.nodes[n].op)))
        << lines[n];
  }
}

// The text of the first packet of program 0 for which `wanted` holds.
template <class Wanted>
std::string explain_first(const ToyBundle& bundle, Wanted wanted) {
  const ProgramView& program = bundle.file.programs()[0];
  const auto found = std::find_if(program.packets.begin(), program.packets.end(), wanted);
  EXPECT_NE(found, program.packets.end()) << disassemble(program);
  return explain_packet(bundle.file, bundle.stages, 0, static_cast<uint32_t>(found - program.packets.begin()));
}

TEST(Provenance, ExplainsAMatrixProductDownToItsTensor) {
  const ToyBundle bundle = toy_bundle(2);
  const std::string text =
      explain_first(bundle, [](const Packet& p) { return static_cast<Op>(p.body) == Op::kLinear && p.n_waits > 0; });
  EXPECT_NE(text.find(": linear\n"), std::string::npos) << text;
  EXPECT_NE(text.find("layer0."), std::string::npos) << text;    // the weight's name
  EXPECT_NE(text.find("= linear("), std::string::npos) << text;  // the operator's line
  EXPECT_NE(text.find("signalled by 0:"), std::string::npos) << text;
}

TEST(Provenance, SaysWhoWaitsForAPacket) {
  const ToyBundle bundle = toy_bundle(2);
  const std::string text = explain_first(bundle, [](const Packet& p) { return p.n_signals > 0; });
  EXPECT_NE(text.find("waited for by 0:"), std::string::npos) << text;
}

TEST(Provenance, ExplainsEveryPacketOfEveryProgram) {
  const ToyBundle bundle = toy_bundle(3);
  for (uint32_t i = 0; i < bundle.file.programs().size(); ++i) {
    for (uint32_t p = 0; p < bundle.file.programs()[i].packets.size(); ++p) {
      EXPECT_NE(explain_packet(bundle.file, bundle.stages, i, p).find("predicted"), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace plow
