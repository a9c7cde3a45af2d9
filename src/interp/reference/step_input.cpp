#include "interp/reference/step_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace plow::reference {
namespace {

class InputCheck {
 public:
  InputCheck(const BundleFile& bundle, const MachineLimits& limits, const StepInput& input)
      : bundle_(bundle), limits_(limits), input_(input) {}

  Result<StepColumns> run() {
    PLOW_TRY_STATUS(check_program());
    PLOW_TRY_STATUS(fill_rows());
    PLOW_TRY_STATUS(check_samples());
    PLOW_TRY_STATUS(fill_tables());
    PLOW_TRY_STATUS(check_blocks());
    columns_.token_ids = input_.token_ids;
    columns_.sample_rows = input_.sample_rows;
    columns_.sampling = input_.sampling;
    columns_.sampled.resize(input_.sample_rows.size());
    return std::move(columns_);
  }

 private:
  Status check_program() {
    if (input_.program >= bundle_.programs().size()) {
      return input_error(
          fmt::format("program {}, and the bundle has {}", input_.program, bundle_.programs().size()));
    }
    const ProgramEntry& entry = *bundle_.programs()[input_.program].entry;
    const size_t rows = input_.token_ids.size(), samples = input_.sample_rows.size();
    if (rows == 0 || rows > entry.max_rows || samples > entry.max_samples ||
        input_.sampling.size() != samples) {
      return input_error(
          fmt::format("{} rows, {} samples and {} sampling parameters; the program takes 1 to {} rows and up "
                      "to {} samples",
                      rows, samples, input_.sampling.size(), entry.max_rows, entry.max_samples));
    }
    if (input_.n_steps == 0 || input_.n_steps > kMaxSteps) {
      return input_error(fmt::format("{} steps; a doorbell asks for 1 to {}", input_.n_steps, kMaxSteps));
    }
    return {};
  }

  Status fill_rows() {
    std::vector<bool> used(limits_.slots, false);
    for (size_t i = 0; i < input_.spans.size(); ++i) {
      const Span& span = input_.spans[i];
      const size_t rows = columns_.positions.size();
      if (span.n_rows == 0 || span.first_row != rows || span.n_rows > input_.token_ids.size() - rows) {
        return input_error(fmt::format("span {} has rows [{}, +{}) after row {} of {}", i, span.first_row,
                                       span.n_rows, rows, input_.token_ids.size()));
      }
      if (span.slot >= limits_.slots || used[span.slot]) {
        return input_error(fmt::format("span {} has slot {}, which is used twice or not below {}", i,
                                       span.slot, limits_.slots));
      }
      used[span.slot] = true;
      const uint64_t end = uint64_t{span.first_position} + span.n_rows + (input_.n_steps - 1);
      if (end > limits_.context) {
        return input_error(
            fmt::format("span {} reaches position {}, and a slot has {}", i, end - 1, limits_.context));
      }
      for (uint32_t r = 0; r < span.n_rows; ++r) {
        columns_.positions.push_back(span.first_position + r);
        columns_.row_slots.push_back(span.slot);
        columns_.span_first.push_back(span.first_position);
      }
    }
    if (columns_.positions.size() == input_.token_ids.size()) return {};
    return input_error(fmt::format("spans have {} rows, and there are {} tokens", columns_.positions.size(),
                                   input_.token_ids.size()));
  }

  Status check_samples() const {
    for (const uint32_t token : input_.token_ids) {
      if (token >= bundle_.header().vocab)
        return input_error(fmt::format("token {} of {}", token, bundle_.header().vocab));
    }
    for (size_t s = 0; s < input_.sample_rows.size(); ++s) {
      if (input_.sample_rows[s] >= input_.token_ids.size()) {
        return input_error(
            fmt::format("sample {} is of row {} of {}", s, input_.sample_rows[s], input_.token_ids.size()));
      }
      const SamplingParams& params = input_.sampling[s];
      if ((params.flags & kSampleGreedy) == 0 && !(params.temperature > 0)) {
        return input_error(
            fmt::format("sample {} has temperature {}, which is not above 0", s, params.temperature));
      }
      if (params.n_top > 0) {
        return input_error(fmt::format(
            "sample {} asks for its {} likeliest tokens, which this machine does not tell", s, params.n_top));
      }
    }
    if (input_.n_steps == 1) return {};
    std::vector<bool> sampled(input_.token_ids.size(), false);
    for (const uint32_t row : input_.sample_rows) sampled[row] = true;
    const bool all = input_.sample_rows.size() == sampled.size() &&
                     std::find(sampled.begin(), sampled.end(), false) == sampled.end();
    if (all && input_.spans.size() == input_.token_ids.size()) return {};
    return input_error("several steps need one row a span and every row sampled once");
  }

  Status fill_tables() {
    const auto groups = bundle_.kv_groups();
    columns_.table_width = limits_.table_width;
    columns_.block_tables = input_.block_tables;
    if (columns_.block_tables.empty()) {
      for (const KvGroup& group : groups) {
        const uint32_t blocks = (limits_.context + group.block_tokens - 1) / group.block_tokens;
        std::vector<uint32_t> table(size_t{limits_.slots} * limits_.table_width, 0);
        for (uint32_t slot = 0; slot < limits_.slots; ++slot) {
          for (uint32_t b = 0; b < blocks; ++b)
            table[size_t{slot} * limits_.table_width + b] = slot * blocks + b;
        }
        columns_.block_tables.push_back(std::move(table));
      }
    }
    bool fits = columns_.block_tables.size() == groups.size();
    for (const auto& table : columns_.block_tables)
      fits = fits && table.size() == size_t{limits_.slots} * limits_.table_width;
    if (fits) return {};
    return input_error(fmt::format("block tables must be {} of {} entries", groups.size(),
                                   size_t{limits_.slots} * limits_.table_width));
  }

  // Every block that a row may touch exists, and one that is written belongs to one slot.
  Status check_blocks() const {
    struct Use {
      uint32_t slot;
      bool written;
    };
    for (uint32_t g = 0; g < columns_.block_tables.size(); ++g) {
      const KvGroup& group = bundle_.kv_groups()[g];
      std::map<uint32_t, Use> uses;
      for (const Span& span : input_.spans) {
        const uint32_t lowest = group.window == 0 || span.first_position + 1 < group.window
                                    ? 0
                                    : span.first_position + 1 - group.window;
        const uint32_t last = span.first_position + span.n_rows - 1 + (input_.n_steps - 1);
        for (uint32_t b = lowest / group.block_tokens; b <= last / group.block_tokens; ++b) {
          const uint32_t block = columns_.block_tables[g][size_t{span.slot} * limits_.table_width + b];
          const bool written = (b + 1) * uint64_t{group.block_tokens} > span.first_position;
          if (block >= limits_.pool_blocks[g]) {
            return input_error(fmt::format("slot {}: block {} of KV group {} is {} of {}", span.slot, b, g,
                                           block, limits_.pool_blocks[g]));
          }
          const auto [use, is_new] = uses.try_emplace(block, Use{span.slot, written});
          if (!is_new && (use->second.written || written)) {
            return input_error(fmt::format(
                "block {} of KV group {} is in the tables of slots {} and {}, and one of them writes it",
                block, g, use->second.slot, span.slot));
          }
        }
      }
    }
    return {};
  }

  const BundleFile& bundle_;
  const MachineLimits& limits_;
  const StepInput& input_;
  StepColumns columns_;
};

}  // namespace

Result<StepColumns> make_columns(const BundleFile& bundle, const MachineLimits& limits,
                                 const StepInput& input) {
  return InputCheck(bundle, limits, input).run();
}

}  // namespace plow::reference
