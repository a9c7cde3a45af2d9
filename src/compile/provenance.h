// Who waits for whom, and where a packet comes from: packet -> tile -> operator -> tensors of the checkpoint.
#pragma once

#include "bundle/bundle.h"
#include "compile/pipeline.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plow {

// The packets of one program by the counters that they signal and wait for. Packets count within the program.
class CounterIndex {
 public:
  explicit CounterIndex(const ProgramView& program);

  // Packets that signal a counter which `wait` of `packet` reads in some step, ascending.
  std::vector<uint32_t> signallers(uint32_t packet, const Wait& wait) const;
  // Packets that wait for a counter which `signal` of `packet` adds to in some step, ascending.
  std::vector<uint32_t> waiters(uint32_t packet, const Signal& signal) const;

 private:
  std::vector<uint32_t> counters_of(uint32_t packet, uint32_t counter, Band band) const;

  const ProgramView* program_;
  std::vector<std::vector<uint32_t>> signalling_;  // by counter
  std::vector<std::vector<uint32_t>> waiting_;     // by counter
};

// The worker in whose list a packet is. REQUIRES packet < program.packets.size().
uint32_t worker_of(const ProgramView& program, uint32_t packet);

// The graph node that a packet computes a part of; not valid for packets of the step protocol. Packets and
// tasks have the same numbers.
NodeId node_of(const ProgramStages& stages, uint32_t packet);

// What a tensor is to people: the checkpoint's name for what lies in the tape, "%12" for the value of a node,
// a column of the step.
std::string tensor_label(const BundleFile& bundle, const TensorEntry& tensor);

// The line of print_graph() for each node.
std::vector<std::string> node_lines(const OpGraph& graph);

// Several lines: which tiles a packet computes, of which operator, from which tensors, what it waits for and
// who signals that.
std::string explain_packet(const BundleFile& bundle, const BundleStages& stages, uint32_t program,
                           uint32_t packet);

}  // namespace plow
