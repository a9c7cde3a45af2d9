// A model of two layers, scheduled by hand for two workers, and the same model in double: what the engine's
// tests run before any compiler.
//
// Layer 0 attends to everything, layer 1 within a window. Every operator is its own packet a worker: matrices
// are split by column tiles, row-wise operators by row tiles. Each operator has counters for each row tile
// and one for all.
#pragma once

#include "bundle/bundle.h"
#include "isa/x86_64/body_rig.h"
#include "runtime/engine.h"

#include <cstdint>
#include <vector>

namespace plow {

struct TinyModel {
  static constexpr uint32_t kVocab = 50, kHidden = 24, kHeads = 4, kKvHeads = 2, kHeadDim = 6, kInner = 40,
                            kWindow = 20;
  static constexpr uint32_t kContext = 150, kSlots = 3, kWorkers = 2, kLayers = 2;
  static constexpr float kEps = 1e-5f, kScale = 0.408f;

  struct Layer {
    std::vector<double> norm, q, k, v, o, post_norm, gate, up, down;
  };
  std::vector<double> embedding, frequencies, norm, head;
  std::vector<Layer> layers;

  TinyModel();

  // Logits of every row of the sequence, in double: [tokens][kVocab].
  std::vector<std::vector<double>> logits(const std::vector<uint32_t>& tokens) const;
};

// The bundle's tables and its tape.
struct TinyBundle {
  BundleTables tables;
  TapeBytes tape;
};
TinyBundle make_tiny_bundle(const TinyModel& model);
// REQUIRES that `bundle` outlives the result.
Result<Engine> make_tiny_engine(const TinyBundle& bundle, const EngineOptions& options);

}  // namespace plow
