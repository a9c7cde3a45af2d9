// A bundle on disk: what the compiler writes and the runtime maps; the only thing that they share.
#pragma once

#include "abi/header.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "ops/tile_rule.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plow {

// One program's tables, as spans into the mapped file (or into the writer's vectors).
struct ProgramView {
  const ProgramEntry* entry = nullptr;
  std::span<const WorkerEntry> workers;
  std::span<const Packet> packets;
  std::span<const Wait> waits;
  std::span<const Signal> signals;
  std::span<const StreamEntry> stream;
  std::span<const TensorEntry> tensors;

  std::span<const Packet> packets_of(uint32_t worker) const {
    return packets.subspan(workers[worker].first_packet, workers[worker].n_packets);
  }
};

// model.pkt, validated: every index, count and offset in it is in range, so that whoever reads through the
// views need not check again.
class BundleFile {
 public:
  // Errors (kInput): cut, altered (digest), of another ABI version, sections out of range or overlapping,
  // indices out of range. The message says which.
  static Result<BundleFile> open(const std::filesystem::path& model_pkt);
  static Result<BundleFile> from_bytes(std::vector<std::byte> bytes);  // tests and fuzzers

  const BundleHeader& header() const { return *header_; }
  std::span<const ProgramView> programs() const { return programs_; }
  std::span<const KvGroup> kv_groups() const { return kv_groups_; }
  std::span<const SourceTensor> sources() const { return sources_; }
  std::string_view source_name(const SourceTensor& source) const;
  std::string_view graph_text() const { return graph_text_; }
  std::string_view rewrite_log() const { return rewrite_log_; }
  std::string_view build_record() const { return build_record_; }  // JSON

 private:
  Status parse(std::span<const std::byte> bytes);

  MappedFile file_;
  std::vector<std::byte> owned_;
  const BundleHeader* header_ = nullptr;
  std::vector<ProgramView> programs_;
  std::span<const KvGroup> kv_groups_;
  std::span<const SourceTensor> sources_;
  std::string_view names_, graph_text_, rewrite_log_, build_record_;
};

// A packet's operator as its tile rule sees it: which regions its tiles read and write. `shapes` must outlive
// the instance.
std::vector<OperandShape> operand_shapes(const ProgramView& program, const Packet& packet);
OpInstance op_instance(const Packet& packet, std::span<const OperandShape> shapes);

// What a program is made of before it is bytes.
struct ProgramTables {
  ProgramEntry entry{};  // counts and offsets are filled in by write
  std::vector<WorkerEntry> workers;
  std::vector<Packet> packets;
  std::vector<Wait> waits;
  std::vector<Signal> signals;
  std::vector<StreamEntry> stream;
  std::vector<TensorEntry> tensors;
};

struct SourceRecord {
  std::string name;
  uint64_t tape_offset = 0, tape_bytes = 0;
  uint64_t digest_low = 0, digest_high = 0;
};

struct BundleTables {
  BundleHeader header{};  // magic, counts, offsets and digests are filled in by serialise
  std::vector<ProgramTables> programs;
  std::vector<KvGroup> kv_groups;
  std::vector<SourceRecord> sources;
  std::string graph_text, rewrite_log, build_record;
};

// The bytes of model.pkt; the same tables give the same bytes.
std::vector<std::byte> serialise_bundle(const BundleTables& tables);

// The tables that the file was written from: serialise_bundle gives the file's bytes back. For those who
// change a bundle: rescheduling, and tests that seed faults.
BundleTables tables_of(const BundleFile& bundle);

// Writes the length and the digest into the header of a bundle that was changed in place. REQUIRES at least a
// header's bytes.
void seal_bundle(std::span<std::byte> bytes);

// How many steps one descriptor may ask for (StepDescriptor::n_steps): bounds the ring of tokens. 64 steps
// between two looks at the host cost at most a few tens of milliseconds of latency for a new request on the
// parts we aim at.
constexpr uint32_t kMaxSteps = 64;

// Device memory that a bundle needs with `slots` sequences of up to `context` positions: exact, from the
// header and tables alone. REQUIRES slots and context within the header's limits.
struct MemoryPlan {
  uint64_t weights = 0;
  uint64_t arena = 0;  // the largest of the programs'
  uint64_t kv = 0;
  uint64_t counters = 0;  // all banks, the largest of the programs'
  uint64_t step = 0;      // descriptors, history, token ring
  uint64_t scratch = 0;   // all workers
  uint64_t total() const { return weights + arena + kv + counters + step + scratch; }
};
MemoryPlan plan_memory(const BundleFile& bundle, uint32_t slots, uint32_t context);

// Blocks that one sequence of `context` positions needs at most in a group: a sliding window keeps only the
// blocks that it touches.
uint32_t blocks_per_sequence(const KvGroup& group, uint32_t context, uint32_t max_rows);

}  // namespace plow
