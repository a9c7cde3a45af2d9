// The step descriptor: all that differs from one step to the next. The host writes it, rings the doorbell, and reads tokens back;
// packets never change. Everything is an array in device-visible memory; rows of a step are numbered 0 .. n_rows - 1.
//
// A step carries spans: runs of consecutive positions of one sequence. A decode row is a span of one row; a chunk of a prompt is a
// longer one. Spans tile [0, n_rows) in order, and one slot has at most one span in a step.
#pragma once

#include <stdint.h>

namespace plow {

constexpr uint32_t kNoSlot = 0xffffffffu;

struct Span {
  uint32_t first_row;
  uint32_t n_rows;          // at least 1
  uint32_t slot;
  uint32_t first_position;  // of first_row in its sequence; rows before it are in the cache
};
static_assert(sizeof(Span) == 16, "Span is part of the step's format");

enum SamplingFlags : uint32_t {
  kSampleGreedy = 1,  // the largest logit, ties to the smallest id; of the parameters that follow, temperature, cuts and seed are not used
  kSampleGiven = 2,   // the token is `given`: nothing is picked, only log-probabilities are told
};

struct TokenBias {
  uint32_t token;
  float bias;  // added to its logit
};
static_assert(sizeof(TokenBias) == 8, "TokenBias is part of the step's format");

struct Sampled {
  uint32_t token;
  float logprob;  // of the token under softmax of the logits as the model gives them
};
static_assert(sizeof(Sampled) == 8, "Sampled is part of the step's format");

constexpr uint32_t kMaxTop = 20;     // likeliest tokens that a row can tell: the bound of OpenAI's top_logprobs
constexpr uint32_t kMaxBias = 1024;  // biased tokens of a row: OpenAI takes 300, vLLM 1024

// How one sampled row picks its token. The order is that of llama.cpp's and vLLM's common subset: what is not allowed, biases,
// penalties, then temperature, then top-k, top-p and min-p on the resulting distribution, then one draw.
struct SamplingParams {
  uint32_t flags;
  float temperature;         // above 0
  uint32_t top_k;            // 0: off
  float top_p;               // 1: off
  float min_p;               // 0: off
  float repetition_penalty;  // 1: off; divides positive and multiplies negative logits of tokens seen in prompt or answer
  float presence_penalty;    // 0: off; subtracted once from tokens seen in the answer
  float frequency_penalty;   // 0: off; subtracted for each time that a token was seen in the answer
  uint64_t seed;             // draws are Philox4x32-10(key = seed, counter = position of the token): the same whatever the batch
  const uint32_t* mask;      // [(vocab + 31) / 32] device-visible words: token t may be picked when bit t % 32 of word t / 32 is set; null: all may
  const TokenBias* bias;     // [n_bias] device-visible, tokens ascending; read only when n_bias is above 0
  Sampled* top;              // [K][n_top] device-visible: the likeliest tokens before all that this struct does, in order; written when n_top is above 0
  uint32_t prompt_tokens;    // how many of the history are the prompt's
  uint32_t n_bias;           // at most kMaxBias
  uint32_t n_top;            // at most kMaxTop and the vocabulary
  uint32_t given;            // of kSampleGiven
  uint32_t n_ids;            // 0: off; only tokens below are picked: the rows of a head beyond its tokenizer's ids mean nothing
  uint32_t reserved[3];
};
static_assert(sizeof(SamplingParams) == 96, "SamplingParams is part of the step's format");

// Columns of the step that a tensor table entry of Space::kStep can name.
enum class StepColumn : uint32_t {
  kTokenIds = 0,    // u32[T]
  kPositions = 1,   // u32[T]
  kRowSlots = 2,    // u32[T]
  kSampleRows = 3,  // u32[S]: the row of each sample
  kSampled = 4,     // Sampled[S], written by Sample
};

// The column's name in texts; null for a number that no column has.
constexpr const char* step_column_name(StepColumn column) {
  switch (column) {
    case StepColumn::kTokenIds: return "token_ids";
    case StepColumn::kPositions: return "positions";
    case StepColumn::kRowSlots: return "row_slots";
    case StepColumn::kSampleRows: return "sample_rows";
    case StepColumn::kSampled: return "sampled";
  }
  return nullptr;
}

// Pointers are device-visible addresses. REQUIRES (the runtime asserts all of it before it rings): spans tile the rows; every block
// that a row may touch is in its block table; positions are below max_context; n_steps > 1 only when every span has one row and
// every row is sampled.
struct StepDescriptor {
  uint32_t epoch;      // 1, 2, ...: grows by one a step; selects the counter bank
  uint32_t program;    // which program of the bundle runs
  uint32_t n_rows;     // T
  uint32_t n_samples;  // S
  uint32_t n_spans;
  uint32_t n_steps;    // K: steps to run before the host is asked again
  uint32_t step;       // 0 .. K - 1: the step that runs now; written by the device
  uint32_t table_width;  // entries of a slot's row in a block table
  const Span* spans;                // [n_spans]
  uint32_t* token_ids;              // [T]
  uint32_t* positions;              // [T]
  const uint32_t* row_slots;        // [T]
  const uint32_t* sample_rows;      // [S]
  const SamplingParams* sampling;   // [S]
  Sampled* sampled;                 // [K][S]: the tokens of every step
  const uint32_t* const* block_tables;  // [kv groups] -> u32[slots][table_width]: the block of each run of block_tokens positions
  uint32_t* history;                // [slots][max_context]: the tokens of each sequence by position; the host writes what it submits, Advance what it feeds back
};

}  // namespace plow
