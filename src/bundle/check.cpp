#include "bundle/check.h"

#include "abi/layout.h"
#include "abi/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plow {
namespace {

// Limits that keep sums in range; no part, model or request comes near them.
constexpr uint32_t kMostWorkers = 1u << 16;
constexpr uint32_t kMostRows = 1u << 24;  // of a step, a context, a table of slots

template <class... Args>
Error wrong(fmt::format_string<Args...> format, Args&&... args) {
  return input_error(fmt::format(format, std::forward<Args>(args)...) +
                     "; the bundle was written wrongly, compile it again with plowc");
}

// Whether [offset, offset + bytes) lies in [0, size).
bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

bool known(Rows rows) { return rows_name(rows) != nullptr; }
bool known(Band band) { return band == Band::kNone || band == Band::kRow; }
bool known(DType dtype) { return dtype_name(dtype) != nullptr; }

uint64_t most_rows(const ProgramEntry& entry, Rows rows) {
  switch (rows) {
    case Rows::kFixed:
      return 1;
    case Rows::kTokens:
      return entry.max_rows;
    case Rows::kSamples:
      return entry.max_samples;
  }
  return 0;
}

Status check_kv_groups(const BundleParts& parts) {
  uint32_t max_rows = 0;
  for (const ProgramEntry& entry : parts.programs) max_rows = std::max(max_rows, entry.max_rows);
  for (size_t g = 0; g < parts.kv_groups.size(); ++g) {
    const KvGroup& group = parts.kv_groups[g];
    if (group.block_tokens == 0 || group.block_tokens > kMostRows || group.block_bytes == 0 ||
        group.block_bytes > kMostBytes || group.window > kMostRows || group.reserved != 0) {
      return wrong("KV group {}: window {}, {} positions and {} bytes a block are out of range", g,
                   group.window, group.block_tokens, group.block_bytes);
    }
    const double pool = static_cast<double>(group.block_bytes) * parts.header->max_slots *
                        blocks_per_sequence(group, parts.header->max_context, max_rows);
    if (pool > static_cast<double>(kMostBytes)) {
      return wrong("KV group {}: {} slots of {} positions would need {:.3g} bytes", g,
                   parts.header->max_slots, parts.header->max_context, pool);
    }
  }
  return {};
}

Status check_sources(const BundleParts& parts) {
  for (size_t s = 0; s < parts.sources.size(); ++s) {
    const SourceTensor& source = parts.sources[s];
    if (!inside(source.name_offset, source.name_bytes, parts.names_bytes)) {
      return wrong("source tensor {}: its name [{}, +{}) is outside the {} bytes of names", s,
                   source.name_offset, source.name_bytes, parts.names_bytes);
    }
    if (!inside(source.tape_offset, source.tape_bytes, parts.header->tape_bytes)) {
      return wrong("source tensor {}: its bytes [{}, +{}) are outside the tape of {} bytes", s,
                   source.tape_offset, source.tape_bytes, parts.header->tape_bytes);
    }
  }
  return {};
}

Status check_entry(const ProgramEntry& entry) {
  if (entry.max_rows == 0 || entry.max_rows > kMostRows || entry.max_samples > kMostRows) {
    return wrong("up to {} rows and {} samples a step are out of range", entry.max_rows, entry.max_samples);
  }
  if (entry.token_row_tile == 0 || entry.sample_row_tile == 0) {
    return wrong("row tiles of {} and {} rows: a row tile has at least one", entry.token_row_tile,
                 entry.sample_row_tile);
  }
  if (entry.n_tensors > kNoTensor)
    return wrong("{} tensors are more than an operand can count", entry.n_tensors);
  if (entry.arena_bytes > kMostBytes || !(entry.predicted_ns >= 0) || std::isinf(entry.predicted_ns) ||
      entry.reserved != 0) {
    return wrong("an arena of {} bytes, {} ns a step, reserved {}: out of range", entry.arena_bytes,
                 entry.predicted_ns, entry.reserved);
  }
  return {};
}

// The workers' lists follow each other and hold every packet and stream entry once.
Status check_workers(const ProgramView& program) {
  uint64_t packet = 0, stream = 0;
  for (size_t w = 0; w < program.workers.size(); ++w) {
    const WorkerEntry& worker = program.workers[w];
    if (worker.first_packet != packet || worker.first_stream != stream) {
      return wrong("worker {}: its lists begin at packet {} and stream entry {} instead of {} and {}", w,
                   worker.first_packet, worker.first_stream, packet, stream);
    }
    packet += worker.n_packets;
    stream += worker.n_stream;
  }
  if (packet != program.packets.size() || stream != program.stream.size()) {
    return wrong("the workers' lists hold {} packets and {} stream entries of {} and {}", packet, stream,
                 program.packets.size(), program.stream.size());
  }
  return {};
}

// Bytes from the first to the last of the tensor, in its layout.
uint64_t extent(const BundleParts& parts, const TensorEntry& tensor) {
  const uint64_t element = dtype_bytes(tensor.dtype);
  switch (tensor.layout) {
    case Layout::kRowMajor:
      return uint64_t{tensor.rows - 1} * tensor.row_stride + tensor.cols * element;
    case Layout::kRows16Pairs:
      return (uint64_t{tensor.rows} + 15) / 16 * 16 * ((uint64_t{tensor.cols} + 1) / 2 * 2) * element;
    case Layout::kAtoms8x128:
      return atom_shape(tensor.rows, tensor.cols, dtype_bytes(tensor.dtype)).bytes();
    case Layout::kRows16Blocks:
      return (uint64_t{tensor.rows} + 15) / 16 * (tensor.cols / kBlockColumns) *
             row_block_bytes(tensor.dtype);
    case Layout::kKvBlocks:
    case Layout::kKvRows:
      return 2 * uint64_t{tensor.cols} * parts.kv_groups[tensor.kv_group].block_tokens * element;
  }
  return 0;
}

Status check_place(const BundleParts& parts, const ProgramView& program, const TensorEntry& tensor) {
  uint64_t space = 0;
  switch (tensor.space) {
    case Space::kTape:
      space = parts.header->tape_bytes;
      break;
    case Space::kArena:
      space = program.entry->arena_bytes;
      break;
    case Space::kKv:
      if (tensor.kv_group >= parts.kv_groups.size())
        return wrong("KV group {} of {}", tensor.kv_group, parts.kv_groups.size());
      space = parts.kv_groups[tensor.kv_group].block_bytes;
      break;
    case Space::kStep:
      if (tensor.offset <= static_cast<uint64_t>(StepColumn::kSampled)) return {};
      return wrong("step column {} does not exist", tensor.offset);
    default:
      return wrong("memory space {} does not exist", static_cast<int>(tensor.space));
  }
  if (!inside(tensor.offset, tensor.bytes, space)) {
    return wrong("bytes [{}, +{}) are outside its space of {}", tensor.offset, tensor.bytes, space);
  }
  if (extent(parts, tensor) > tensor.bytes) {
    return wrong("{} x {} {} need {} bytes, and it has {}", tensor.rows, tensor.cols,
                 dtype_name(tensor.dtype), extent(parts, tensor), tensor.bytes);
  }
  return {};
}

Status check_layout(const BundleParts& parts, const TensorEntry& tensor) {
  const uint64_t element = dtype_bytes(tensor.dtype);
  const bool kv = tensor.space == Space::kKv;
  if (kv && tensor.dtype != parts.header->kv_dtype) return wrong("a dtype that is not the cache's");
  if (kv != (tensor.layout == Layout::kKvBlocks || tensor.layout == Layout::kKvRows))
    return wrong("KV blocks lie in the KV pool, and nothing else does");
  const bool of_blocks = is_of_blocks(tensor.dtype);
  if (of_blocks != (tensor.layout == Layout::kRows16Blocks) || (of_blocks && tensor.space != Space::kTape) ||
      tensor.cols % dtype_block_values(tensor.dtype) != 0) {
    return wrong("{} columns of {} in layout {}: blocks lie whole in the tape, in a layout of their own",
                 tensor.cols, dtype_name(tensor.dtype), static_cast<int>(tensor.layout));
  }
  switch (tensor.layout) {
    case Layout::kRowMajor:
      if (tensor.space == Space::kStep) return {};  // the columns' layout is that of step.h
      if (tensor.row_stride < tensor.cols * element || tensor.row_stride % element != 0) {
        return wrong("{} bytes between rows of {} {}", tensor.row_stride, tensor.cols,
                     dtype_name(tensor.dtype));
      }
      break;
    case Layout::kRows16Pairs:
    case Layout::kRows16Blocks:
    case Layout::kAtoms8x128:
    case Layout::kKvBlocks:
    case Layout::kKvRows:
      if (tensor.row_stride != 0)
        return wrong("a row stride of {} in a layout without one", tensor.row_stride);
      break;
    default:
      return wrong("layout {} does not exist", static_cast<int>(tensor.layout));
  }
  const uint64_t alignment = of_blocks ? kBlockLineBytes : element;
  if (tensor.offset % alignment != 0)
    return wrong("offset {} is no multiple of {} bytes", tensor.offset, alignment);
  return {};
}

Status check_tensor(const BundleParts& parts, const ProgramView& program, const TensorEntry& tensor) {
  if (!known(tensor.dtype) || !known(tensor.row_kind)) {
    return wrong("dtype {} or row kind {} does not exist", static_cast<int>(tensor.dtype),
                 static_cast<int>(tensor.row_kind));
  }
  if (tensor.cols == 0 || tensor.reserved != 0)
    return wrong("{} columns, reserved {}", tensor.cols, tensor.reserved);
  const bool rows_fit = tensor.row_kind == Rows::kFixed
                            ? tensor.rows > 0
                            : tensor.rows == most_rows(*program.entry, tensor.row_kind);
  if (!rows_fit) {
    return wrong("{} rows of kind {} in a program of up to {} rows and {} samples", tensor.rows,
                 rows_name(tensor.row_kind), program.entry->max_rows, program.entry->max_samples);
  }
  if (tensor.source != kNoSource && (tensor.space != Space::kTape || tensor.source >= parts.sources.size())) {
    return wrong("source {} of {}", tensor.source, parts.sources.size());
  }
  if (tensor.space != Space::kKv && tensor.kv_group != 0)
    return wrong("KV group {} outside the KV pool", tensor.kv_group);
  PLOW_TRY_STATUS(check_layout(parts, tensor));
  return check_place(parts, program, tensor);
}

Status check_waits_and_signals(const ProgramView& program) {
  for (size_t i = 0; i < program.waits.size(); ++i) {
    const Wait& wait = program.waits[i];
    if (!known(wait.rows) || !known(wait.band) || wait.reserved != 0)
      return wrong("wait {}: a field is out of range", i);
    const uint64_t threshold = wait.per_row_tile * max_row_tiles(*program.entry, wait.rows) + wait.constant;
    if (threshold > 0xffffffffu)
      return wrong("wait {}: its threshold {} does not fit a counter", i, threshold);
  }
  for (size_t i = 0; i < program.signals.size(); ++i) {
    const Signal& signal = program.signals[i];
    if (!known(signal.band) || signal.scope > 1 || signal.reserved != 0)
      return wrong("signal {}: a field is out of range", i);
  }
  return {};
}

Status check_counter(const ProgramView& program, const Packet& packet, uint32_t counter, Band band,
                     const char* what) {
  const uint64_t row_tiles = max_row_tiles(*program.entry, static_cast<Rows>(packet.row_kind));
  const uint64_t end = counter + (band == Band::kRow ? row_tiles : 1);
  if (end <= program.entry->n_counters) return {};
  return wrong("its {} on counter {} reaches counter {}, and the program has {}", what, counter, end - 1,
               program.entry->n_counters);
}

Status check_packet(const BundleParts& parts, const ProgramView& program, const Packet& packet) {
  if (!known(static_cast<Rows>(packet.row_kind)) || packet.row_stride == 0 || packet.variant != 0 ||
      (packet.flags & ~kPacketTimed) != 0) {
    return wrong("row kind {}, row stride {}, variant {} or flags {:#x} is out of range", packet.row_kind,
                 packet.row_stride, packet.variant, packet.flags);
  }
  for (const uint16_t operand : packet.operand) {
    if (operand != kNoTensor && operand >= program.tensors.size()) {
      return wrong("operand {} of {} tensors", operand, program.tensors.size());
    }
  }
  if (!inside(packet.wait_first, packet.n_waits, program.waits.size())) {
    return wrong("waits [{}, +{}) of {}", packet.wait_first, packet.n_waits, program.waits.size());
  }
  for (const Wait& wait : program.waits.subspan(packet.wait_first, packet.n_waits)) {
    PLOW_TRY_STATUS(check_counter(program, packet, wait.counter, wait.band, "wait"));
  }
  if (!inside(packet.signal_first, packet.n_signals, program.signals.size())) {
    return wrong("signals [{}, +{}) of {}", packet.signal_first, packet.n_signals, program.signals.size());
  }
  for (const Signal& signal : program.signals.subspan(packet.signal_first, packet.n_signals)) {
    PLOW_TRY_STATUS(check_counter(program, packet, signal.counter, signal.band, "signal"));
  }
  return check_operator(parts, program, packet);
}

Status check_stream(const BundleParts& parts, const ProgramView& program) {
  for (size_t w = 0; w < program.workers.size(); ++w) {
    const WorkerEntry& worker = program.workers[w];
    for (const StreamEntry& entry : program.stream.subspan(worker.first_stream, worker.n_stream)) {
      const bool fits = entry.kv == 0
                            ? inside(entry.offset, entry.bytes, parts.header->tape_bytes)
                            : entry.kv <= parts.kv_groups.size() && entry.offset < program.tensors.size() &&
                                  program.tensors[entry.offset].space == Space::kKv;
      if (!fits || (worker.n_packets <= 0xffff && entry.packet >= worker.n_packets)) {
        return wrong("worker {}: a stream entry (offset {}, {} bytes, kv {}, packet {}) is out of range", w,
                     entry.offset, entry.bytes, entry.kv, entry.packet);
      }
    }
  }
  return {};
}

}  // namespace

uint64_t max_row_tiles(const ProgramEntry& entry, Rows rows) {
  switch (rows) {
    case Rows::kFixed:
      return 1;
    case Rows::kTokens:
      return (uint64_t{entry.max_rows} + entry.token_row_tile - 1) / entry.token_row_tile;
    case Rows::kSamples:
      return (uint64_t{entry.max_samples} + entry.sample_row_tile - 1) / entry.sample_row_tile;
  }
  return 0;
}

Status check_header(const BundleHeader& header) {
  if (isa_name(header.isa) == nullptr) {
    return input_error(fmt::format(
        "the bundle is for instruction set {}, which this program does not know; use the plowrt of the "
        "version that compiled it",
        static_cast<uint32_t>(header.isa)));
  }
  if (header.n_workers == 0 || header.n_workers > kMostWorkers)
    return wrong("{} workers are out of range", header.n_workers);
  if (header.vocab == 0 || header.hidden == 0 || header.max_context == 0 || header.max_slots == 0 ||
      header.max_context > kMostRows || header.max_slots > kMostRows) {
    return wrong("a vocabulary of {}, {} hidden columns, a context of {} and {} slots are out of range",
                 header.vocab, header.hidden, header.max_context, header.max_slots);
  }
  if (header.tape_bytes > kMostBytes) return wrong("a tape of {} bytes", header.tape_bytes);
  const bool kv_dtype_fits =
      header.kv_dtype == DType::kF32 || header.kv_dtype == DType::kBf16 || header.kv_dtype == DType::kF16;
  if (!kv_dtype_fits) return wrong("{} is no dtype of a KV cache", static_cast<int>(header.kv_dtype));
  const bool zero = std::all_of(std::begin(header.reserved0), std::end(header.reserved0),
                                [](uint8_t byte) { return byte == 0; });
  if (!zero || header.reserved1 != 0) return wrong("reserved fields of the header are not zero");
  return {};
}

Status check_parts(const BundleParts& parts) {
  if (parts.programs.empty()) return wrong("no programs");
  for (size_t p = 0; p < parts.programs.size(); ++p) {
    if (const Status status = check_entry(parts.programs[p]); !status.ok())
      return status.error().at(fmt::format("program {}", p));
  }
  PLOW_TRY_STATUS(check_kv_groups(parts));
  return check_sources(parts);
}

Status check_program(const BundleParts& parts, const ProgramView& program) {
  PLOW_TRY_STATUS(check_workers(program));
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const Status status = check_tensor(parts, program, program.tensors[t]);
    if (!status.ok()) return status.error().at(fmt::format("tensor {}", t));
  }
  PLOW_TRY_STATUS(check_waits_and_signals(program));
  for (size_t p = 0; p < program.packets.size(); ++p) {
    const Packet& packet = program.packets[p];
    const char* name = op_name(static_cast<Op>(packet.body));
    if (name == nullptr || is_leaf(static_cast<Op>(packet.body)))
      return wrong("packet {}: no body has number {}", p, packet.body);
    const Status status = check_packet(parts, program, packet);
    if (!status.ok()) return status.error().at(fmt::format("packet {} ({})", p, name));
  }
  return check_stream(parts, program);
}

}  // namespace plow
