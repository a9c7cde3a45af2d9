// The runtime: a bundle, a device with its memory, and the workers that play its packets. One thread at a time may
// call an Engine.
//
// A sequence lives in a slot. A step submits, for each of some sequences, the tokens of its next positions,
// and says which of these rows shall pick a token. The token that a step picks is not part of the sequence
// until it is submitted (or fed back, in a step of several).
#pragma once

#include "abi/step.h"
#include "base/error.h"
#include "bundle/bundle.h"
#include "interp/context.h"
#include "isa/x86_64/interpreter.h"
#include "runtime/block_pool.h"
#include "runtime/gpu_driver.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace plow {

struct EngineOptions {
  // "cpu", "cuda:N" or "hsa:N". Empty: what the bundle was compiled for. A device that is named is used or the engine is refused.
  std::string device{};
  uint32_t threads = 0;  // 0: as many as the bundle has workers; another number than that is refused
  IsaLevel isa = IsaLevel::kAuto;
  uint32_t slots = 0;        // 0: the bundle's max_slots
  uint32_t context = 0;      // 0: the bundle's max_context
  // Positions that the cache holds, over all slots, of layers without a window; 0: all slots' whole contexts.
  // One sequence's context is always held.
  uint64_t cache_positions = 0;
  bool pin = false;          // one processor a worker
  bool verify_tape = false;  // read all weights and compare their digest
  bool require_receipt = true;  // refuse a bundle that plow_verify has not accepted
  bool random_weights = false;  // of a GPU: make weights there instead of reading the bundle's, for measuring
  bool trace = false;           // packets note their times: packet_times()
  // A wait inside a step that takes longer than this fails the step. Far above any wait of a healthy step on
  // a loaded machine.
  std::chrono::milliseconds deadline{30'000};
};

// What one sequence does in a step.
struct StepRequest {
  uint32_t slot = 0;
  std::span<const uint32_t> tokens;     // at least one: the tokens of the slot's next positions
  std::span<const uint32_t> sample_at;  // ascending indices into `tokens`: the rows that pick a token
  // Of all of these rows. mask and bias stay the caller's; flags may hold kSampleGreedy only, and top and
  // given are set here.
  SamplingParams sampling{};
  // Of the first of these rows: tokens that are not picked, but only told the log-probability of.
  std::span<const uint32_t> given{};
};

struct StepOptions {
  // Steps to run, each feeding its tokens to the next: 1 .. kMaxSteps; more than 1 only when every request
  // has one token and samples it.
  uint32_t n_steps = 1;
  bool logits = false;  // copy the logits of the sampled rows; with one step only
};

struct StepToken {
  uint32_t request;  // index
  uint32_t row;      // index into its tokens
  uint32_t token;
  float logprob;  // under softmax of the logits as the model gives them
  std::span<const Sampled> top{};  // the n_top likeliest tokens; until the next step
};

struct StepResult {
  uint32_t program = 0;           // that ran
  uint32_t n_samples = 0;         // S
  std::vector<StepToken> tokens;  // [n_steps][n_samples], requests in order
  std::vector<float> logits;      // [n_samples][vocab] when asked for
};

// Greedy, without penalties.
SamplingParams greedy_sampling();
// Errors (kUsage): a parameter outside of its range, named with its value. `vocab` bounds the biased tokens.
Status check_sampling(const SamplingParams& params, uint32_t vocab);

class Engine {
 public:
  // Maps DIRECTORY/model.pkt and DIRECTORY/weights.tape. Errors (kVerification): no receipt, or of other bytes. Errors (kInput): a bundle that cannot be read, is
  // for another instruction set, has packets that this interpreter lacks a body for (named), or a tape of the
  // wrong size or digest; (kUsage) a number of threads other than the bundle's workers, slots or context
  // above the bundle's; (kDoesNotFit) no memory; (kDevice) an instruction set level that is not here.
  static Result<Engine> load(const std::filesystem::path& directory, const EngineOptions& options);
  // The same of a bundle in memory. REQUIRES that `tape` outlives the engine.
  static Result<Engine> create(BundleFile bundle, std::span<const std::byte> tape,
                               const EngineOptions& options);

  // The same on a GPU behind `driver`, whatever the options say of devices.
  static Result<Engine> create_on(BundleFile bundle, std::span<const std::byte> tape, const EngineOptions& options,
                                  std::unique_ptr<GpuDriver> driver);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  // An empty sequence's slot. Errors (kDoesNotFit): all slots are taken.
  Result<uint32_t> open_slot();
  void close_slot(uint32_t slot);  // REQUIRES an open slot; gives its blocks back

  uint32_t position(uint32_t slot) const;  // tokens of the sequence so far. REQUIRES an open slot
  // Forgets the tokens from `position` on. Errors (kUsage): the slot is not open, the position is after its
  // end or before that of named blocks, or what a row there would read has left a window.
  Status rewind(uint32_t slot, uint32_t position);

  // Sharing what sequences begin with. names[i] stands for the tokens of blocks 0 .. i of a sequence, each of
  // block_tokens() (prefix_names.h); 0 when the bundle's caches cannot be shared.
  uint32_t block_tokens() const;
  // Takes over blocks that others named, from the slot's position on, which must be where a block begins;
  // else none. `tokens` are the sequence's, as many as the names stand for. The number of tokens that need not
  // be submitted any more. Errors (kDevice). REQUIRES an open slot.
  Result<uint32_t> share_blocks(uint32_t slot, std::span<const uint32_t> tokens,
                                std::span<const BlockName> names);
  // Of the blocks that an empty slot could take over, those that sequences use now: they need no further room.
  uint32_t shareable_in_use(uint32_t kv_group, std::span<const BlockName> names) const;
  // Names the slot's whole blocks, from the block `first` on. The slot cannot be rewound to before their end.
  // REQUIRES an open slot whose position is not before it.
  void name_blocks(uint32_t slot, uint32_t first, std::span<const BlockName> names);

  // Runs a step. On an error nothing has changed but that blocks may have been given back that no later row
  // reads. Errors (kUsage): a request that the rules above forbid; (kDoesNotFit) more rows or samples than
  // any program takes, a sequence beyond the context, no free block; (kDevice) a worker waited in vain: the
  // message says which packet and counter. The engine can be used on after each of them.
  Result<StepResult> step(std::span<const StepRequest> requests, const StepOptions& options = {});

  const BundleFile& bundle() const;
  IsaLevel isa_level() const;  // that runs; kAuto on a GPU
  std::string device_name() const;  // "cpu", or the GPU's name
  Result<double> read_bandwidth();  // of the device, measured now; 0 on a CPU
  // See StepDevice::read_times.
  Result<std::vector<std::vector<PacketTimes>>> packet_times(uint32_t program);
  uint32_t n_workers() const;
  uint32_t n_slots() const;
  uint32_t context() const;  // positions that a sequence may have
  uint32_t vocab() const;
  uint32_t max_rows() const;  // of a step, in the largest program
  uint32_t max_samples() const;
  const BlockPool& pool(uint32_t kv_group) const;
  uint32_t held_blocks(uint32_t kv_group, uint32_t slot) const;
  uint32_t free_blocks(uint32_t kv_group) const;
  uint32_t n_blocks(uint32_t kv_group) const;

  struct State;  // engine_state.h

 private:
  explicit Engine(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace plow
