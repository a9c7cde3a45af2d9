#include "tune/packet_rig.h"

#include "base/check.h"
#include "runtime/engine.h"


#include <algorithm>
#include <chrono>

namespace plow {

namespace {

constexpr uint64_t kMostArena = uint64_t{64} << 20;
constexpr uint32_t kVocab = 1024;  // token ids that rows have are below it

// Every 16-bit half of memory: 0.0078 in bf16, 1.0 in f16, 0.0079 in f32. No zeros and no denormals, which
// some processors multiply at another speed.
void fill(const DeviceMemory& memory) {
  auto* words = reinterpret_cast<uint16_t*>(memory.data());
  std::fill(words, words + memory.bytes() / sizeof(uint16_t), uint16_t{0x3c00});
}

uint64_t align(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

}  // namespace

Result<std::unique_ptr<PacketRig>> PacketRig::create(const RigSize& size) {
  std::unique_ptr<PacketRig> rig(new PacketRig);
  rig->size_ = size;
  rig->lists_.resize(size.n_workers);
  PLOW_TRY(rig->tape_,
           DeviceMemory::allocate(std::max<uint64_t>(align(size.tape_bytes), 4096), "calibration weights"));
  PLOW_TRY(rig->arena_, DeviceMemory::allocate(kMostArena, "calibration activations"));
  fill(rig->tape_);
  fill(rig->arena_);
  return rig;
}

uint16_t PacketRig::add(TensorEntry entry) {
  entry.source = kNoSource;
  tensors_.push_back(entry);
  return static_cast<uint16_t>(tensors_.size() - 1);
}

uint16_t PacketRig::add_arena(uint32_t rows, uint32_t cols) {
  TensorEntry entry{};
  entry.dtype = DType::kF32;
  entry.space = Space::kArena;
  entry.layout = Layout::kRowMajor;
  entry.row_kind = Rows::kTokens;
  entry.rows = rows;
  entry.cols = cols;
  entry.row_stride = (cols + 15) / 16 * 64;
  entry.offset = arena_used_;
  entry.bytes = uint64_t{entry.row_stride} * rows;
  arena_used_ += align(entry.bytes);
  PLOW_CHECK(arena_used_ <= kMostArena, "calibration: {} bytes of activations", arena_used_);
  return add(entry);
}

uint16_t PacketRig::add_tape(DType dtype, Layout layout, uint32_t rows, uint32_t cols) {
  TensorEntry entry{};
  entry.dtype = dtype;
  entry.space = Space::kTape;
  entry.layout = layout;
  entry.rows = rows;
  entry.cols = cols;
  entry.offset = tape_used_;
  entry.bytes = uint64_t{rows} * cols * dtype_bytes(dtype);
  tape_used_ += align(entry.bytes);
  PLOW_CHECK(tape_used_ <= tape_.bytes(), "calibration: {} bytes of weights", tape_used_);
  return add(entry);
}

uint16_t PacketRig::add_step(StepColumn column) {
  TensorEntry entry{};
  entry.dtype = DType::kU32;
  entry.space = Space::kStep;
  entry.layout = Layout::kRowMajor;
  entry.rows = entry.cols = 1;
  entry.offset = static_cast<uint64_t>(column);
  return add(entry);
}

uint16_t PacketRig::add_cache(DType dtype, uint32_t kv_heads, uint32_t head_dim) {
  TensorEntry entry{};
  entry.dtype = dtype;
  entry.space = Space::kKv;
  entry.layout = Layout::kKvBlocks;
  entry.rows = 1;
  entry.cols = kv_heads * head_dim;
  entry.bytes = uint64_t{2} * entry.cols * group_.block_tokens * dtype_bytes(dtype);
  group_.block_bytes = std::max(group_.block_bytes, entry.bytes);
  return add(entry);
}

Packet& PacketRig::add_packet(uint32_t worker, Op op, std::initializer_list<uint16_t> operands,
                              uint32_t cols) {
  List& list = lists_[worker];
  Packet packet{};
  packet.body = static_cast<uint16_t>(op);
  packet.row_kind = static_cast<uint8_t>(is_protocol(op)                              ? Rows::kFixed
                                         : op == Op::kSample || op == Op::kGatherRows ? Rows::kSamples
                                                                                      : Rows::kTokens);
  packet.col_count = packet.col_stride = packet.row_stride = 1;
  packet.tile_cols = cols;
  std::fill(std::begin(packet.operand), std::end(packet.operand), kNoTensor);
  std::copy(operands.begin(), operands.end(), packet.operand);
  list.packets.push_back(packet);
  list.waits.emplace_back();
  list.signals.emplace_back();
  return list.packets.back();
}

void PacketRig::repeat(uint32_t worker) {
  List& list = lists_[worker];
  list.packets.push_back(list.packets.back());
  list.waits.emplace_back();
  list.signals.emplace_back();
}

void PacketRig::wait(uint32_t worker, uint32_t counter, uint32_t count) {
  lists_[worker].waits.back().push_back({counter, 0, count, Rows::kFixed, Band::kNone, 0});
}

void PacketRig::signal(uint32_t worker, uint32_t counter) {
  lists_[worker].signals.back().push_back({counter, Band::kNone, 0, 0});
}

// As schedule/ ends a program's queues.
void PacketRig::end_lists() {
  const uint32_t left = add_counter();
  for (uint32_t w = 0; w < size_.n_workers; ++w) {
    if (w + 1 == size_.n_workers) add_packet(w, Op::kClearBank, {}, 0);
    add_packet(w, Op::kLeave, {}, 0);
    signal(w, left);
  }
  add_packet(0, Op::kAdvance, {}, 0);
  wait(0, left, size_.n_workers);
}

void PacketRig::flatten() {
  for (List& list : lists_) {
    workers_.push_back(
        {static_cast<uint32_t>(packets_.size()), static_cast<uint32_t>(list.packets.size()), 0, 0});
    for (size_t i = 0; i < list.packets.size(); ++i) {
      Packet& packet = list.packets[i];
      packet.wait_first = static_cast<uint32_t>(waits_.size());
      packet.n_waits = static_cast<uint8_t>(list.waits[i].size());
      packet.signal_first = static_cast<uint32_t>(signals_.size());
      packet.n_signals = static_cast<uint8_t>(list.signals[i].size());
      waits_.insert(waits_.end(), list.waits[i].begin(), list.waits[i].end());
      signals_.insert(signals_.end(), list.signals[i].begin(), list.signals[i].end());
      packets_.push_back(packet);
    }
  }
}

void PacketRig::set_step() {
  const uint32_t rows = size_.rows;
  for (uint32_t r = 0; r < rows; ++r) {
    token_ids_.push_back(r * 7 % kVocab);
    positions_.push_back(size_.first_position + r);
    row_slots_.push_back(0);
  }
  for (uint32_t s = 0; s < size_.samples; ++s) {
    sample_rows_.push_back(s);
    sampling_.push_back(greedy_sampling());
  }
  sampled_.resize(size_.samples);
  spans_.push_back({0, rows, 0, size_.first_position});
  const uint32_t context = size_.first_position + rows;
  const uint32_t n_blocks = (context + group_.block_tokens - 1) / group_.block_tokens;
  for (uint32_t b = 0; b < n_blocks; ++b) block_table_.push_back(b);
  history_.assign(context + 1, 0);
  step_.n_rows = rows;
  step_.n_samples = size_.samples;
  step_.n_spans = step_.n_steps = 1;
  step_.table_width = n_blocks;
  step_.spans = spans_.data();
  step_.token_ids = token_ids_.data();
  step_.positions = positions_.data();
  step_.row_slots = row_slots_.data();
  step_.sample_rows = sample_rows_.data();
  step_.sampling = sampling_.data();
  step_.sampled = sampled_.data();
  tables_[0] = block_table_.data();
  step_.block_tables = tables_;
  step_.history = history_.data();
  device_.history_stride = context + 1;
}

Status PacketRig::start(IsaLevel level) {
  end_lists();
  flatten();
  set_step();
  uint64_t scratch = kCounterLineBytes;
  for (const Packet& packet : packets_)
    scratch =
        std::max(scratch, body_scratch_bytes(packet, tensors_.data(), std::max(size_.rows, size_.samples)));
  scratch = align(scratch);
  PLOW_TRY(pool_,
           DeviceMemory::allocate(block_table_.size() * group_.block_bytes + 4096, "a calibration cache"));
  fill(pool_);
  PLOW_TRY(counters_,
           DeviceMemory::allocate(uint64_t{kCounterBanks} * n_counters_ * kCounterLineBytes, "counters"));
  PLOW_TRY(scratch_, DeviceMemory::allocate(scratch * size_.n_workers, "scratch"));
  program_ = {workers_.data(), packets_.data(), waits_.data(), signals_.data(),
              nullptr,         tensors_.data(), size_.rows,    std::max(size_.samples, 1u),
              n_counters_};
  pools_[0] = pool_.data();
  device_.programs = &program_;
  device_.tape = tape_.data();
  device_.arena = arena_.data();
  device_.kv_pools = pools_;
  device_.kv_groups = &group_;
  device_.counters = counters_.data();
  device_.bank_lines = n_counters_;
  device_.n_workers = size_.n_workers;
  device_.deadline_ns = 10'000'000'000;  // a stopped machine, not a slow one
  device_.step = &step_;
  device_.control = &control_;
  const auto start_threads = [&](bool pin) {
    return WorkerThreads::start(x86_64_interpreter(level), device_, scratch_.data(), scratch, pin);
  };
  // On a processor each, if there are enough: two workers on one would measure the scheduler.
  auto threads = start_threads(true);
  if (!threads.ok()) threads = start_threads(false);
  PLOW_TRY(threads_, std::move(threads));
  return {};
}

Result<Nanoseconds> PacketRig::run() {
  using Clock = std::chrono::steady_clock;
  ++step_.epoch;
  const auto begin = Clock::now();
  threads_->run();
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  if (control_.abort != 0)
    return device_error("a worker got no processor for ten seconds, so nothing can be measured");
  return Nanoseconds(took.count());
}

}  // namespace plow
