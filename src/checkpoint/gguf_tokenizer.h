// The tokenizer that a GGUF file carries in its metadata, as it stands there: what the keys mean is the
// business of the text library. Arrays of a vocabulary have hundreds of thousands of entries, so they are
// views into the mapped file, read when they are walked; the loader has checked that they lie inside it.
// Source of the keys: the GGUF specification (ggml/docs/gguf.md), section "Tokenizer", and gguf-py's
// constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plow {

// An array of strings: a length in 64 bits, then the bytes, one after the other. Forward only.
class GgufStrings {
 public:
  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using reference = std::string_view;
    using pointer = void;
    using iterator_category = std::input_iterator_tag;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at_) + sizeof(uint64_t), size()};
    }
    Iterator& operator++() {
      at_ += sizeof(uint64_t) + size();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    size_t size() const {
      uint64_t n = 0;
      std::memcpy(&n, at_, sizeof n);
      return static_cast<size_t>(n);
    }
    const std::byte* at_ = nullptr;
  };

  GgufStrings() = default;
  // REQUIRES that `bytes` are exactly `count` strings (GgufFile checks it).
  GgufStrings(std::span<const std::byte> bytes, size_t count) : bytes_(bytes), count_(count) {}

  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  std::span<const std::byte> bytes_;
  size_t count_ = 0;
};

// An array of numbers at an address of any alignment.
template <class T>
class GgufNumbers {
 public:
  GgufNumbers() = default;
  // REQUIRES bytes.size() to be a multiple of sizeof(T).
  explicit GgufNumbers(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size() / sizeof(T); }
  bool empty() const { return bytes_.empty(); }
  // REQUIRES i < size().
  T operator[](size_t i) const {
    T value{};
    std::memcpy(&value, bytes_.data() + i * sizeof(T), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

// llama.cpp's enum llama_token_type: what token_types holds.
enum class GgufTokenType : int32_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Views point into the mapped file of the Checkpoint that holds this. ENSURED by the loader: scores and
// token_types are empty or as long as tokens; every id is below tokens.size(); strings are UTF-8 except where
// a token is not.
struct GgufTokenizer {
  std::string model;  // tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece), ...
  std::string
      pre;  // tokenizer.ggml.pre: the pre-tokenizer's name ("smollm", "qwen2", "llama-bpe"), may be ""
  GgufStrings tokens;                         // [vocabulary]
  GgufNumbers<float> scores;                  // [vocabulary] or empty
  GgufNumbers<int32_t> token_types;           // [vocabulary] of GgufTokenType, or empty
  GgufStrings merges;                         // "left right", best first; may be empty
  GgufNumbers<uint8_t> precompiled_charsmap;  // SentencePiece's normaliser table; may be empty

  std::optional<uint32_t> bos_id, eos_id, eot_id, eom_id, unknown_id, padding_id, separator_id, cls_id,
      mask_id;
  // Absent keys mean what the tokenizer model says, so they stay absent here.
  std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
  std::optional<std::string> chat_template;  // Jinja source
};

}  // namespace plow
