// Any text through tokenizers of every model. The first byte picks the tokenizer and the options.
#include "base/check.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/utf8.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace plow;

constexpr const char* kTokenizers[] = {
    // SentencePiece BPE with byte fallback for a few bytes only, and unknown tokens that fuse.
    R"({"added_tokens":[{"id":0,"content":"<unk>","special":true},{"id":9,"content":"<tool>","lstrip":true,"rstrip":true}],
        "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]},
        "decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"_"},"content":" "},{"type":"ByteFallback"},
        {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
        "model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
        "vocab":{"<unk>":0,"a":1,"b":2,"_":3,"ab":4,"_a":5,"_ab":6,"<0xC3>":7,"<0xA9>":8},"merges":["a b","_ a","_ ab"]}})",
    // Byte-level BPE behind Qwen's expression.
    R"({"added_tokens":[{"id":260,"content":"<|end|>","special":true},{"id":261,"content":"word","single_word":true}],
        "normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},
        "behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]},
        "decoder":{"type":"ByteLevel"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"\u0120":2,"ab":3,"\u0120a":4,"\u00c3":5,"\u00a9":6},
        "merges":[["a","b"],["\u0120","a"]]}})",
    // Unigram behind Metaspace.
    R"({"added_tokens":[{"id":1,"content":"</s>","special":true}],"normalizer":{"type":"Sequence","normalizers":[{"type":"Nmt"},{"type":"NFKC"}]},
        "pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},
        "decoder":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},
        "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["</s>",0],["_",-2],["a",-3],["_a",-2.5],["ab",-1],["aba",-1.5]]}})",
    // WordPiece behind BERT's normalizer.
    R"({"added_tokens":[{"id":1,"content":"[SEP]","special":true,"normalized":false}],
        "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"lowercase":true},
        "pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},
        "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,
        "vocab":{"[UNK]":0,"[SEP]":1,"a":2,"##a":3,"ab":4,"##b":5,".":6}}})"};

struct Opened {
  std::vector<std::byte> table;
  Tokenizer tokenizer;
};

const std::vector<Opened>& tokenizers() {
  static const std::vector<Opened> opened = [] {
    std::vector<Opened> list;
    for (const char* json : kTokenizers) {
      auto table = compile_tokenizer(json);
      PLOW_CHECK(table.ok(), "{}", table.error().message);
      auto tokenizer = Tokenizer::open(*table);
      list.push_back({std::move(*table), std::move(*tokenizer)});
    }
    return list;
  }();
  return opened;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Tokenizer& tokenizer = tokenizers()[data[0] % std::size(kTokenizers)].tokenizer;
  const EncodeOptions options = {(data[0] & 0x40) != 0, (data[0] & 0x80) != 0};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto ids = tokenizer.encode(text, options);
  if (!ids.ok()) {
    PLOW_CHECK(first_invalid_utf8(text), "a text that is UTF-8 was refused: {}", ids.error().message);
    return 0;
  }
  TokenStream stream(tokenizer, false);
  std::string decoded;
  for (const uint32_t id : *ids) {
    PLOW_CHECK(options.parse_special || !tokenizer.is_special(id) || id == tokenizer.special_ids().unk,
               "text became the control token {}", id);
    const std::string part = stream.push(id);
    PLOW_CHECK(!first_invalid_utf8(part), "a part of a stream cuts a character");
    decoded += part;
  }
  decoded += stream.finish();
  PLOW_CHECK(decoded == tokenizer.decode(*ids, false), "a stream differs from decoding at once");
  return 0;
}
