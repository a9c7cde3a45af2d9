#include "compile/write_tape.h"

#include "base/release_pages.h"

#include <algorithm>

namespace plow {

namespace {

// Floats that are converted at a time: 16 MB, which stays within reach of the last-level cache.
constexpr size_t kBatchFloats = size_t{4} << 20;

// The file is written in blocks of two huge pages, so that the kernel caches it in huge pages and maps them
// whole: a step that goes through all weights then misses the TLB 500 times less.
constexpr size_t kFileBlock = size_t{4} << 20;

class TapeWriter {
 public:
  TapeWriter(const OpGraph& graph, const TapePlan& plan, const Checkpoint& checkpoint,
             StagedDirectory::Writer& file, ProgressSink& progress)
      : graph_(graph), plan_(plan), checkpoint_(checkpoint), file_(file), progress_(progress) {}

  Result<WrittenTape> run() {
    result_.sources = planned_sources(graph_, plan_);
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      const TapeTensor& tensor = plan_.tensors[i];
      SourceRecord& source = result_.sources[i];
      PLOW_TRY_STATUS(pad_to(tensor.offset));
      Xxh3Stream digest;
      const Node& node = graph_.node(tensor.node);
      PLOW_TRY_STATUS(node.op == Op::kConstant ? write_constant(tensor, graph_.constants[node.leaf], digest)
                                               : write_weight(tensor, graph_.weights[node.leaf], digest));
      source.digest_low = digest.digest().low;
      source.digest_high = digest.digest().high;
    }
    PLOW_TRY_STATUS(pad_to(plan_.bytes));
    PLOW_TRY_STATUS(file_.append(block_));
    result_.digest = whole_.digest();
    return std::move(result_);
  }

 private:
  Status append(std::span<const std::byte> bytes) {
    whole_.update(bytes);
    written_ += bytes.size();
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(bytes.size(), kFileBlock - block_.size()));
      block_.insert(block_.end(), piece.begin(), piece.end());
      bytes = bytes.subspan(piece.size());
      if (block_.size() < kFileBlock) break;
      PLOW_TRY_STATUS(file_.append(block_));
      block_.clear();
    }
    progress_.stage("weights", written_, plan_.bytes);
    if (progress_.cancelled()) return input_error("the compile was interrupted");
    return {};
  }

  Status pad_to(uint64_t offset) {
    PLOW_CHECK(offset >= written_ && offset - written_ < kTapeAlignment, "tape tensors out of order");
    const std::vector<std::byte> zeros(offset - written_);
    return append(zeros);
  }

  // Room for the tensor's bytes, zeroed.
  void begin_piece(const TapeTensor& piece) {
    packed_.assign(layout_bytes(piece.layout, piece.dtype, piece.rows, piece.cols), std::byte{0});
  }

  Status end_piece(Xxh3Stream& digest) {
    digest.update(packed_);
    return append(packed_);
  }

  // Constants are small (inverse frequencies); those of 64 bits are written from the doubles themselves.
  Status write_constant(const TapeTensor& tensor, const ConstantData& constant, Xxh3Stream& digest) {
    if (tensor.dtype == DType::kF64) {
      const auto bytes = std::as_bytes(std::span(constant.values));
      digest.update(bytes);
      return append(bytes);
    }
    values_.assign(constant.values.begin(), constant.values.end());
    begin_piece(tensor);
    pack_rows(tensor, 0, tensor.rows, values_.data(), packed_);
    return end_piece(digest);
  }

  void read_values(const CheckpointTensor& source, uint32_t first, uint32_t n_rows, float plus) {
    values_.resize(n_rows * static_cast<size_t>(source.row_values()));
    read_rows(source, first, n_rows, values_.data());
    if (plus == 0) return;
    for (float& value : values_) value += plus;
  }

  Status write_weight(const TapeTensor& tensor, const WeightRef& weight, Xxh3Stream& digest) {
    const CheckpointTensor* source = checkpoint_.find(weight.name);
    PLOW_CHECK(source != nullptr && source->row_values() == tensor.cols && source->n_rows() == tensor.rows,
               "tensor {} is not what the model was built from", weight.name);
    const size_t rows_at_once = std::max<size_t>(kBatchFloats / tensor.cols / kRowGroup, 1) * kRowGroup;
    // Rows that lie together are written batch by batch; otherwise the whole tensor is packed first.
    const bool whole = !packs_by_rows(tensor.layout);
    if (whole) begin_piece(tensor);
    for (uint32_t first = 0; first < tensor.rows;) {
      const auto n_rows = static_cast<uint32_t>(std::min<size_t>(rows_at_once, tensor.rows - first));
      TapeTensor piece = tensor;
      if (!whole) {
        piece.rows = n_rows;
        begin_piece(piece);
      }
      if (is_of_blocks(tensor.dtype)) {
        stored_.resize(n_rows * stored_row_bytes(*source));
        read_stored_rows(*source, first, n_rows, stored_.data());
        pack_blocks(piece, 0, n_rows, stored_, packed_);
      } else {
        read_values(*source, first, n_rows, weight.plus);
        pack_rows(piece, whole ? first : 0, n_rows, values_.data(), packed_);
      }
      if (!whole) PLOW_TRY_STATUS(end_piece(digest));
      first += n_rows;
    }
    if (whole) PLOW_TRY_STATUS(end_piece(digest));
    release_pages(source->bytes);  // a checkpoint may be larger than memory
    return {};
  }

  const OpGraph& graph_;
  const TapePlan& plan_;
  const Checkpoint& checkpoint_;
  StagedDirectory::Writer& file_;
  ProgressSink& progress_;
  std::vector<float> values_;
  std::vector<std::byte> stored_;  // blocks of the checkpoint
  std::vector<std::byte> packed_;
  std::vector<std::byte> block_;  // not written yet
  Xxh3Stream whole_;
  uint64_t written_ = 0;
  WrittenTape result_;
};

}  // namespace

std::vector<SourceRecord> planned_sources(const OpGraph& graph, const TapePlan& plan) {
  std::vector<SourceRecord> sources;
  for (const TapeTensor& tensor : plan.tensors) {
    const Node& node = graph.node(tensor.node);
    const std::string& name =
        node.op == Op::kConstant ? graph.constants[node.leaf].name : graph.weights[node.leaf].name;
    sources.push_back({name, tensor.offset, tensor.bytes, 0, 0});
  }
  return sources;
}

Result<WrittenTape> write_tape(const OpGraph& graph, const TapePlan& plan, const Checkpoint& checkpoint,
                               const StagedDirectory& directory, ProgressSink& progress) {
  PLOW_TRY(auto file, directory.open_file("weights.tape"));
  PLOW_TRY(auto result, TapeWriter(graph, plan, checkpoint, file, progress).run());
  PLOW_TRY_STATUS(file.close());
  return result;
}

}  // namespace plow
