// A step of sampled rows, for the tests of `sample` on every kind of worker.
#pragma once

#include "isa/x86_64/body_rig.h"

#include <algorithm>
#include <vector>

namespace plow {

// Rows with their own logits, histories and parameters; slot i holds row i's sequence.
struct SampledRows {
  uint32_t vocab;
  std::vector<std::vector<float>> logits;
  std::vector<std::vector<uint32_t>> history;
  std::vector<SamplingParams> params;
};

// Rows with the same parameters but for the seed. Logits of spread 12 have a few tokens that weigh something;
// of spread 1, all do.
inline SampledRows random_rows(uint32_t n, uint32_t vocab, double spread, const SamplingParams& params) {
  SampledRows rows{vocab, {}, {}, {}};
  for (uint32_t i = 0; i < n; ++i) {
    const auto values = random_values(vocab, 100 + i, spread);
    rows.logits.emplace_back(values.begin(), values.end());
    std::vector<uint32_t> history;
    for (uint32_t t = 0; t < 1 + i % 60; ++t) history.push_back((t * 5 + i) % vocab % 23);
    rows.history.push_back(history);
    rows.params.push_back(params);
    rows.params.back().seed = 0x1234567890ull * i + i;
    rows.params.back().prompt_tokens = static_cast<uint32_t>(history.size() / 2);
  }
  return rows;
}

// Gives the rig these rows' sequences and parameters; their logits, one row after the other. REQUIRES a rig of as many
// rows and samples.
inline std::vector<double> set_sampled_rows(BodyRig& rig, const SampledRows& rows) {
  const auto n = static_cast<uint32_t>(rows.logits.size());
  rig.history_stride = 64;
  rig.history.resize(size_t{n} * 64);
  std::vector<double> all;
  for (uint32_t i = 0; i < n; ++i) {
    rig.row_slots[i] = i;
    rig.positions[i] = static_cast<uint32_t>(rows.history[i].size()) - 1;
    std::copy(rows.history[i].begin(), rows.history[i].end(), rig.history.begin() + i * 64);
    rig.sampling[i] = rows.params[i];
    all.insert(all.end(), rows.logits[i].begin(), rows.logits[i].end());
  }
  return all;
}

}  // namespace plow
