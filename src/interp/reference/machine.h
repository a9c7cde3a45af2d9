// The reference machine: runs any bundle's program packet by packet on one thread, all workers simulated, in
// any order that the tables allow. It is the oracle of schedules (an order that can go wrong is reported
// whatever order was run) and of interpreters (its bodies are plain loops in double that share nothing with
// the device bodies).
//
// What is ordered before what, and nothing else is:
//  - the packets of a worker, and the row tiles of a packet, in their order;
//  - a signal before a wait that it lets go on. A wait must be for all the signals that the tables promise to
//  its counter (checked), so
//    that what it has seen does not depend on the order;
//  - a step before the next one (the packet `advance` must come after every other packet of the step, which
//  is checked).
// Every element that a tile reads or writes, by the footprint of its operator, is checked against this order.
// See FindingKind.
//
// One device. Everything of a device (Memory, Shadow, CounterBanks) is a struct that is made once a machine,
// a place of memory is named by its Space, and signals carry their scope; several devices are several of
// these.
//
// Names are in plow::reference, so that the machine and a device interpreter can be in one program.
#pragma once

#include "abi/step.h"
#include "base/error.h"
#include "bundle/bundle.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plow::reference {

// Which worker, among those whose next packet may run, runs it. All are legal; what they have in common must
// be the result.
enum class Policy : uint8_t {
  kRoundRobin,     // the next worker in turn
  kRandom,         // any, by the seed
  kFurthestAhead,  // the one that has run the most
  kDelayOne,       // worker seed % n only when no other can, the others at random
  kReverse,        // the one with the highest number
};

struct MachineOptions {
  uint32_t slots = 1;
  uint32_t context = 0;  // positions of a slot; 0: the bundle's maximum
  Policy policy = Policy::kRoundRobin;
  uint64_t seed = 0;
  bool arithmetic =
      true;  // false: order, memory and counters are checked, nothing is computed, and every token is 0
  // `clear_bank` zeroes the bank of this many steps ago. 1 is the protocol; tests of the protocol seed
  // others.
  uint32_t clear_distance = 1;
};

// One doorbell: what step.h says, on host vectors. Slots keep their tokens and caches from one run to the
// next.
struct StepInput {
  uint32_t program = 0;
  std::vector<Span> spans;
  std::vector<uint32_t> token_ids;       // [T]
  std::vector<uint32_t> sample_rows;     // [S]
  std::vector<SamplingParams> sampling;  // [S]
  uint32_t n_steps = 1;
  // By KV group: u32[slots][table_width()]. Empty: every slot has blocks of its own, in order.
  std::vector<std::vector<uint32_t>> block_tables;
};

enum class FindingKind : uint8_t {
  kUnorderedRead,   // no wait puts the write before the read
  kUnorderedWrite,  // no wait puts an earlier read, or an earlier write, before the write
  kNeverWritten,    // a read of memory that nothing has written, in this step or (the cache) ever
  kWrongContent,    // a read of memory that last got another tensor's rows, or another position's keys
  kOwnInput,        // a tile overwrites what it reads itself
  kWrittenTwice,    // an output element by two tiles
  kNotWritten,      // an output element by none
  kDeadlock,        // no worker can go on
  kCounter,    // one that begins a step above zero or ends it off the promised number; a wait for another
               // number
  kEndOfStep,  // `advance` is missing, twice, or not ordered after every other packet
};
const char* finding_name(FindingKind kind);

struct Finding {
  FindingKind kind;
  uint32_t packet;  // of the program; kNoPacket when none is to blame alone
  uint32_t worker;
  std::string text;             // a sentence with packets, workers, tensor, row and column
  uint16_t tensor = kNoTensor;  // of the program

  static constexpr uint32_t kNoPacket = 0xffffffffu;
};

struct StepOutput {
  std::vector<std::vector<Sampled>> sampled;  // [steps that ran][S]
  std::vector<float> logits;                  // [S][vocab] of the last step
  std::vector<Finding> findings;  // empty: all is well. After a step with findings no further step runs.
};

// kVerification with the first finding's text and how many there are.
Status verified(const StepOutput& output);

class MachineState;

class Machine {
 public:
  // `tape` and `bundle` must outlive the machine. Errors (kInput): a tape of another length, more slots or
  // context than the bundle allows.
  static Result<Machine> create(const BundleFile& bundle, std::span<const std::byte> tape,
                                const MachineOptions& options);

  Machine(Machine&&) noexcept;
  Machine& operator=(Machine&&) noexcept;
  ~Machine();

  // Runs the steps of one doorbell. Errors: kInput for an input that step.h does not allow, naming the row,
  // slot or block; kVerification when an earlier run had findings (its memory is worth nothing).
  Result<StepOutput> run(const StepInput& input);

  // Forgets every sequence and finding, as if new, and goes on by another policy.
  void reset(Policy policy, uint64_t seed);

  uint32_t table_width() const;
  // Tokens of a slot whose first positions are in blocks that another slot wrote.
  void set_history(uint32_t slot, std::span<const uint32_t> tokens);

 private:
  explicit Machine(std::unique_ptr<MachineState> state);
  std::unique_ptr<MachineState> state_;
};

}  // namespace plow::reference
