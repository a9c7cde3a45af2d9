#include "packet/encode.h"

#include <algorithm>

#include "abi/layout.h"
#include "ops/tile_rule.h"
#include "tile/op_instance.h"

namespace plow {

namespace {

class Encoder {
 public:
  Encoder(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule, const TapePlan& tape, const KvPlan& kv)
      : graph_(graph), tiles_(tiles), schedule_(schedule), tape_(tape), kv_(kv) {}

  ProgramTables run() {
    fill_tensors();
    for (uint32_t w = 0; w < schedule_.n_workers; ++w) {
      WorkerEntry worker{};
      worker.first_packet = static_cast<uint32_t>(tables_.packets.size());
      worker.first_stream = static_cast<uint32_t>(tables_.stream.size());
      for (uint32_t t = schedule_.task_begin[w]; t < schedule_.task_begin[w + 1]; ++t) {
        const auto index = static_cast<uint32_t>(tables_.packets.size()) - worker.first_packet;
        tables_.packets.push_back(encode(schedule_.tasks[t]));
        if (schedule_.tasks[t].op.valid()) add_stream(schedule_.tasks[t], index);
      }
      worker.n_packets = static_cast<uint32_t>(tables_.packets.size()) - worker.first_packet;
      worker.n_stream = static_cast<uint32_t>(tables_.stream.size()) - worker.first_stream;
      tables_.workers.push_back(worker);
    }
    tables_.waits = schedule_.waits;
    tables_.signals = schedule_.signals;
    ProgramEntry& entry = tables_.entry;
    entry.max_rows = schedule_.shape.max_rows;
    entry.max_samples = schedule_.shape.max_samples;
    entry.token_row_tile = schedule_.shape.token_row_tile;
    entry.sample_row_tile = schedule_.shape.sample_row_tile;
    entry.n_counters = schedule_.n_counters;
    entry.arena_bytes = schedule_.arena_bytes;
    entry.predicted_ns = schedule_.predicted_ns;
    return std::move(tables_);
  }

 private:
  // One entry a node that some packet names. What an operator writes into the cache is the cache itself.
  void fill_tensors() {
    std::vector<bool> used(graph_.nodes.size(), false);
    for (const TileOp& op : tiles_.ops) {
      used[op.from.value] = true;
      for (const NodeId input : graph_.inputs_of(op.from)) used[input.value] = true;
    }
    tensor_of_node_.assign(graph_.nodes.size(), kNoTensor);
    for (uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!used[n]) continue;
      const Node& node = graph_.nodes[n];
      if (appends_kv(node.op)) {
        tensor_of_node_[n] = tensor_of_node_[graph_.inputs_of(NodeId(n)).back().value];
        continue;
      }
      PLOW_CHECK(tables_.tensors.size() < kNoTensor, "more tensors than an operand can name");
      tensor_of_node_[n] = static_cast<uint16_t>(tables_.tensors.size());
      tables_.tensors.push_back(tensor_of(n));
    }
  }

  TensorEntry tensor_of(uint32_t n) const {
    const Node& node = graph_.nodes[n];
    TensorEntry entry{};
    entry.rows = node.shape.rows;
    entry.cols = node.shape.cols;
    entry.source = kNoSource;
    entry.node = n;
    entry.dtype = node.dtype;
    entry.row_kind = node.shape.row_kind;
    entry.layout = Layout::kRowMajor;
    if (node.shape.row_kind == Rows::kTokens) entry.rows = schedule_.shape.max_rows;
    if (node.shape.row_kind == Rows::kSamples) entry.rows = schedule_.shape.max_samples;
    if (node.op == Op::kWeight || node.op == Op::kConstant) {
      const uint32_t index = tape_.of_node[n];
      const TapeTensor& tensor = tape_.tensors[index];
      entry.space = Space::kTape;
      entry.offset = tensor.offset;
      entry.bytes = tensor.bytes;
      entry.layout = tensor.layout;
      entry.source = index;
      entry.row_stride = tensor.layout == Layout::kRowMajor ? tensor.cols * dtype_bytes(tensor.dtype) : 0;
    } else if (node.op == Op::kKvState) {
      const KvPlace& place = kv_.of_state[node.leaf];
      entry.space = Space::kKv;
      entry.offset = place.offset;
      entry.bytes = place.bytes;
      entry.layout = kv_.layout;
      entry.kv_group = place.group;
    } else if (node.op == Op::kStepInput || node.op == Op::kSample) {
      entry.space = Space::kStep;
      entry.offset = node.op == Op::kSample ? static_cast<uint32_t>(StepColumn::kSampled) : node.leaf;
      entry.row_stride = node.op == Op::kSample ? sizeof(Sampled) : dtype_bytes(node.dtype);
      entry.bytes = uint64_t{entry.row_stride} * entry.rows;
    } else {
      fill_arena(n, entry);
    }
    return entry;
  }

  void fill_arena(uint32_t n, TensorEntry& entry) const {
    const auto& buffers = schedule_.buffers;
    const auto found = std::lower_bound(buffers.begin(), buffers.end(), n, [](const Buffer& b, uint32_t node) { return b.node.value < node; });
    PLOW_CHECK(found != buffers.end() && found->node.value == n, "node %{} has no buffer", n);
    entry.space = Space::kArena;
    entry.offset = found->offset;
    entry.bytes = found->bytes;
    entry.row_stride = found->row_stride;
  }

  Packet encode(const Task& task) const {
    Packet packet{};
    packet.n_waits = static_cast<uint8_t>(task.n_waits);
    packet.n_signals = static_cast<uint8_t>(task.n_signals);
    PLOW_CHECK(packet.n_waits == task.n_waits && packet.n_signals == task.n_signals, "a packet has at most 255 waits and signals");
    packet.wait_first = task.first_wait;
    packet.signal_first = task.first_signal;
    packet.row_first = static_cast<uint16_t>(task.row_first);
    packet.row_stride = static_cast<uint16_t>(task.row_stride);
    packet.col_stride = 1;
    std::fill(std::begin(packet.operand), std::end(packet.operand), kNoTensor);
    if (!task.op.valid()) {
      packet.body = static_cast<uint16_t>(task.protocol);
      packet.row_kind = static_cast<uint8_t>(Rows::kFixed);
      packet.col_count = 1;
      packet.tile_cols = 1;
      return packet;
    }
    const TileOp& op = tiles_.ops[task.op.value];
    const Node& node = graph_.node(op.from);
    packet.body = static_cast<uint16_t>(node.op);
    packet.row_kind = static_cast<uint8_t>(op.row_kind);
    packet.col_first = task.first_tile;
    PLOW_CHECK(task.n_tiles <= 0xffff, "a packet has at most 65535 column tiles, not {}", task.n_tiles);
    packet.col_count = static_cast<uint16_t>(task.n_tiles);
    packet.tile_cols = op.tile_cols;
    uint32_t operand = 0;
    for (const NodeId input : graph_.inputs_of(op.from)) packet.operand[operand++] = tensor_of_node_[input.value];
    packet.operand[operand] = tensor_of_node_[op.from.value];
    std::copy(node.attributes.begin(), node.attributes.end(), packet.immediate);
    return packet;
  }

  // The bytes of the tape, and the caches, that the task reads whatever the step. A look-up by token id is not known ahead.
  void add_stream(const Task& task, uint32_t packet) {
    const TileOp& op = tiles_.ops[task.op.value];
    const Node& node = graph_.node(op.from);
    if (node.op == Op::kEmbed) return;
    const OperatorView view(graph_, op.from);
    const uint32_t begin = task.first_tile * op.tile_cols;
    const uint32_t end = std::min((task.first_tile + task.n_tiles) * op.tile_cols, node.shape.cols);
    std::vector<Access> accesses;
    tile_rule(node.op)->footprint(view.instance(), begin, end, accesses);
    const auto inputs = graph_.inputs_of(op.from);
    for (const Access& access : accesses) {
      if (access.writes) continue;
      const TensorEntry& tensor = tables_.tensors[tensor_of_node_[inputs[access.operand].value]];
      StreamEntry entry{};
      entry.packet = static_cast<uint16_t>(packet);
      if (tensor.space == Space::kKv) {
        entry.offset = tensor_of_node_[inputs[access.operand].value];
        entry.kv = static_cast<uint16_t>(tensor.kv_group + 1);
        tables_.stream.push_back(entry);
      } else if (tensor.space == Space::kTape) {
        add_weights(tensor, access, entry);
      }
    }
  }

  // What an access reads of the tape: one run of bytes, or one a row group when it does not read all columns.
  void add_weights(const TensorEntry& tensor, const Access& access, StreamEntry entry) {
    if (tensor.layout == Layout::kAtoms8x128) return add_atoms(tensor, access, entry);
    const bool grouped = tensor.layout == Layout::kRows16Pairs || tensor.layout == Layout::kRows16Blocks;
    const bool whole = access.col_end - access.col_begin == tensor.cols || !grouped;
    // A range of columns begins with a pair, but may begin and end within a block.
    const uint32_t unit = dtype_block_values(tensor.dtype), col_begin = access.col_begin / unit * unit;
    const uint32_t begin = grouped ? access.row_begin / kRowGroup * kRowGroup : access.row_begin;
    const uint32_t rows_at_once = whole ? access.row_end - begin : kRowGroup;
    for (uint32_t row = begin; row < access.row_end; row += rows_at_once) {
      const uint32_t columns = whole ? tensor.cols : access.col_end - col_begin;
      const uint64_t skipped = layout_bytes(tensor.layout, tensor.dtype, row, tensor.cols) +
                               (whole ? 0 : layout_bytes(tensor.layout, tensor.dtype, kRowGroup, col_begin));
      const uint64_t bytes = layout_bytes(tensor.layout, tensor.dtype, rows_at_once, columns);
      push_stream(entry, tensor.offset + skipped, bytes);
    }
  }

  void push_stream(StreamEntry entry, uint64_t offset, uint64_t bytes) {
    PLOW_CHECK(bytes <= 0xffffffffu, "a packet streams {} bytes, more than an entry can say", bytes);
    entry.offset = offset;
    entry.bytes = static_cast<uint32_t>(bytes);
    tables_.stream.push_back(entry);
  }

  // The same of a matrix in atoms: one entry a chunk of columns, in the order of the chunks.
  void add_atoms(const TensorEntry& tensor, const Access& access, const StreamEntry& entry) {
    const uint32_t element = dtype_bytes(tensor.dtype);
    const AtomShape shape = atom_shape(tensor.rows, tensor.cols, element);
    const uint32_t chunk_bytes = shape.chunk_atoms * kAtomRowBytes;  // of a row
    const uint32_t first = access.row_begin / kAtomRows, end = (access.row_end + kAtomRows - 1) / kAtomRows;
    for (uint64_t byte = uint64_t{access.col_begin} * element / chunk_bytes * chunk_bytes; byte < uint64_t{access.col_end} * element;
         byte += chunk_bytes) {
      push_stream(entry, tensor.offset + shape.chunk_offset(static_cast<uint32_t>(byte / chunk_bytes), first), (end - first) * shape.chunk_bytes());
    }
  }

  const OpGraph& graph_;
  const TileGraph& tiles_;
  const Schedule& schedule_;
  const TapePlan& tape_;
  const KvPlan& kv_;
  std::vector<uint16_t> tensor_of_node_;
  ProgramTables tables_;
};

}  // namespace

ProgramTables encode_program(const OpGraph& graph, const TileGraph& tiles, const Schedule& schedule, const TapePlan& tape, const KvPlan& kv) {
  return Encoder(graph, tiles, schedule, tape, kv).run();
}

}  // namespace plow
