#include "text/tokenizer/gguf_pre_tokenizers.h"

#include <fmt/format.h>

#include <array>
#include <span>
#include <string>

namespace plow {

namespace {

// The expressions are those of the models' own tokenizer.json files, which llama.cpp quotes beside its
// adaptations (src/llama-vocab.cpp, llm_tokenizer_bpe).
#define PLOW_CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define PLOW_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
#define PLOW_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define PLOW_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define PLOW_UPPER_NO_HAN R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define PLOW_LOWER_NO_HAN R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define PLOW_LEAD R"([^\r\n\p{L}\p{N}]?)"

constexpr const char* kLlama3 = PLOW_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})" PLOW_TAIL;
constexpr const char* kQwen2 = PLOW_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})" PLOW_TAIL;
constexpr const char* kQwen35 = PLOW_CONTRACTIONS
    R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kSeedCoder =
    PLOW_CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    PLOW_LEAD PLOW_UPPER "*" PLOW_LOWER "+|" PLOW_LEAD PLOW_UPPER "+" PLOW_LOWER
                         R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kGpt4o = PLOW_LEAD PLOW_UPPER
    "*" PLOW_LOWER "+" PLOW_CONTRACTIONS "?|" PLOW_LEAD PLOW_UPPER "+" PLOW_LOWER "*" PLOW_CONTRACTIONS
    R"(?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kKimi =
    R"([\p{Han}]+|)" PLOW_LEAD PLOW_UPPER_NO_HAN "*" PLOW_LOWER_NO_HAN "+" PLOW_CONTRACTIONS
    "?|" PLOW_LEAD PLOW_UPPER_NO_HAN "+" PLOW_LOWER_NO_HAN "*" PLOW_CONTRACTIONS R"(?|\p{N}{1,3})" PLOW_TAIL;
constexpr const char* kBloom = " ?[^(\\s|.,!?…。，、।۔،)]+";
constexpr const char* kLineBreak = "[\r\n]";
constexpr const char* kDeepseekCjk = "[一-龥ࠀ-一가-퟿]+";
// The letters of scripts with upper and lower case, as DeepSeek lists them.
constexpr const char* kDeepseekLetters =
    R"(\s?[A-Za-z)"
    R"(\x{b5}\x{c0}-\x{d6}\x{d8}-\x{f6}\x{f8}-\x{1ba}\x{1bc}-\x{1bf}\x{1c4}-\x{293}\x{295}-\x{2af})"
    R"(\x{370}-\x{373}\x{376}\x{377}\x{37b}-\x{37d}\x{37f}\x{386}\x{388}-\x{38a}\x{38c}\x{38e}-\x{3a1})"
    R"(\x{3a3}-\x{3f5}\x{3f7}-\x{481}\x{48a}-\x{52f}\x{531}-\x{556}\x{10a0}-\x{10c5}\x{13a0}-\x{13f5})"
    R"(\x{13f8}-\x{13fd}\x{1c90}-\x{1cba}\x{1cbd}-\x{1cbf}\x{1d00}-\x{1d2b}\x{1d6b}-\x{1d77})"
    R"(\x{1d79}-\x{1d9a}\x{1e00}-\x{1f15}\x{1f18}-\x{1f1d}\x{1f20}-\x{1f45}\x{1f48}-\x{1f4d})"
    R"(\x{1f50}-\x{1f57}\x{1f59}\x{1f5b}\x{1f5d}\x{1f5f}-\x{1f7d}\x{1f80}-\x{1fb4}\x{1fb6}-\x{1fbc})"
    R"(\x{1fbe}\x{1fc2}-\x{1fc4}\x{1fc6}-\x{1fcc}\x{1fd0}-\x{1fd3}\x{1fd6}-\x{1fdb}\x{1fe0}-\x{1fec})"
    R"(\x{1ff2}-\x{1ff4}\x{1ff6}-\x{1ffc}\x{2102}\x{2107}\x{210a}-\x{2113}\x{2115}\x{2119}-\x{211d})"
    R"(\x{2124}\x{2126}\x{2128}\x{212a}-\x{212d}\x{212f}-\x{2134}\x{2139}\x{213c}-\x{213f})"
    R"(\x{2145}-\x{2149}\x{214e}\x{2183}\x{2184}\x{2c00}-\x{2c7b}\x{2c7e}-\x{2ce4}\x{2ceb}-\x{2cee})"
    R"(\x{2cf2}\x{2cf3}\x{a640}-\x{a66d}\x{a680}-\x{a69b}\x{a722}-\x{a76f}\x{a771}-\x{a787})"
    R"(\x{a78b}-\x{a78e}\x{ab70}-\x{abbf}\x{fb00}-\x{fb06}\x{fb13}-\x{fb17}\x{ff21}-\x{ff3a})"
    R"(\x{ff41}-\x{ff5a}\x{10400}-\x{1044f}\x{104b0}-\x{104d3}\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2})"
    R"(\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943})"
    R"(]+)";
constexpr const char* kDeepseekPunctuation = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr const char* kDeepseek3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
    "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

#undef PLOW_CONTRACTIONS
#undef PLOW_TAIL
#undef PLOW_UPPER
#undef PLOW_LOWER
#undef PLOW_UPPER_NO_HAN
#undef PLOW_LOWER_NO_HAN
#undef PLOW_LEAD

// One step of a recipe: an expression whose matches are set apart, or one of the marks below.
constexpr const char* kGpt2Split = "@gpt2";      // ByteLevel with GPT-2's own expression
constexpr const char* kDigitSplit = "@digit";    // every digit
constexpr const char* kNumberSplit = "@number";  // every number
constexpr const char* kPunctuationSplit = "@punctuation";

struct Recipe {
  std::string_view names;  // separated by spaces
  std::array<const char*, 6> steps;
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr Recipe kRecipes[] = {
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2", {kLlama3}, false, true, true},
    {"glm4 glm5", {kLlama3}, false, true},
    {"chatglm-bpe dbrx smaug-bpe", {kLlama3}},
    // Qwen 2's and MPT's tokenizer.json normalize to NFC, which llama.cpp leaves out. The vectors packaged
    // for qwen35 show none.
    {"qwen2 deepseek-r1-qwen megrez", {kQwen2}, true},
    {"qwen35", {kQwen35}},
    {"stablelm2 hunyuan solar-open grok-2", {kQwen2}},
    {"gpt-2 phi-2 gigachat mellum exaone4 olmo jais trillion granite-docling", {kGpt2Split}},
    {"mpt", {kGpt2Split}, true},
    {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", {kDigitSplit, kGpt2Split}},
    {"falcon", {kPunctuationSplit, kGpt2Split, kNumberSplit, "[0-9][0-9][0-9]"}},
    {"deepseek-llm",
     {kLineBreak, kDeepseekLetters, kDeepseekPunctuation, "\\s+$", kDeepseekCjk, kDigitSplit}},
    {"deepseek-coder", {kLineBreak, "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepseekCjk, kDigitSplit}},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {"\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", kDeepseek3}},
    {"tekken", {kTekken}, false, true, true},
    {"gpt-4o llama4 kanana2 minimax-m2", {kGpt4o}},
    {"kimi-k2", {kKimi}},
    {"seed-coder", {kSeedCoder}},
    {"bailingmoe bailingmoe2 llada-moe", {kBailing}},
    {"bloom poro-chat gpt3-finnish", {kBloom}},
    {"viking", {kBloom, "\\p{N}"}},
    {"superbpe", {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
};

bool names_contain(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t space = std::min(names.find(' '), names.size());
    if (names.substr(0, space) == name) return true;
    names.remove_prefix(std::min(space + 1, names.size()));
  }
  return false;
}

Component component_of(std::string_view step) {
  constexpr auto kIsolated = static_cast<uint32_t>(SplitBehavior::kIsolated);
  if (step == kGpt2Split) return {ComponentKind::kByteLevelSplit, 0, 1, "", ""};
  if (step == kDigitSplit) return {ComponentKind::kDigits, 1, 0, "", ""};
  if (step == kNumberSplit) return {ComponentKind::kDigits, 0, 0, "", ""};
  if (step == kPunctuationSplit) {
    return {ComponentKind::kPunctuation, static_cast<uint32_t>(SplitBehavior::kContiguous), 0, "", ""};
  }
  return {ComponentKind::kSplitRegex, kIsolated, 0, std::string(step), ""};
}

GgufPreTokenizer make(const Recipe& recipe) {
  GgufPreTokenizer result;
  result.ignore_merges = recipe.ignore_merges;
  result.add_bos = recipe.add_bos;
  if (recipe.nfc) result.normalizers.push_back({ComponentKind::kNfc, 0, 0, "", ""});
  bool has_byte_level = false;
  for (const char* step : recipe.steps) {
    if (step == nullptr) break;
    result.pre_tokenizers.push_back(component_of(step));
    has_byte_level |= result.pre_tokenizers.back().kind == ComponentKind::kByteLevelSplit;
  }
  if (!has_byte_level) result.pre_tokenizers.push_back({ComponentKind::kByteLevelSplit, 0, 0, "", ""});
  return result;
}

}  // namespace

Result<GgufPreTokenizer> find_gguf_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const Recipe& recipe : kRecipes) {
    if (names_contain(recipe.names, name)) return make(recipe);
    known += fmt::format("{}{}", known.empty() ? "" : " ", recipe.names);
  }
  if (name.empty()) {
    return input_error(
        "tokenizer.ggml.pre is missing, so it is not known how the model splits text into words; convert the "
        "model again with a newer converter");
  }
  return input_error(
      fmt::format("the pre-tokenizer '{}' (tokenizer.ggml.pre) is not known; known are: {}", name, known));
}

}  // namespace plow
