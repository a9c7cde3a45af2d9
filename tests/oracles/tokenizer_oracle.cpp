// Runs the tokenizer on files of texts, so that tools/compare_tokenizers.py can compare it with the library
// `tokenizers`.
//
//   tokenizer_oracle compile OUT.bin tokenizer.json [tokenizer_config.json]
//   tokenizer_oracle compile-gguf OUT.bin METADATA.json        keys of tokenizer.ggml.*, as JSON
//   tokenizer_oracle encode TABLE.bin TEXTS OUT FLAGS           FLAGS: s add_special_tokens, p parse_special,
//   - none tokenizer_oracle decode TABLE.bin IDS OUT FLAGS             FLAGS: k skip_special, - none; by way
//   of TokenStream
//
// TEXTS: for each text a uint32 length and its bytes. IDS: for each text a uint32 count and that many uint32.
// Little-endian. A text that gives an error has the count 0xffffffff.
#include "base/byte_reader.h"
#include "base/mapped_file.h"
#include "text/tokenizer/compile_tokenizer.h"
#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace {

using namespace plow;

constexpr uint32_t kFailed = 0xffffffffu;

void append_u32(std::string& out, uint32_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

Status write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) return input_error("cannot write " + path);
  return {};
}

template <class T>
std::vector<T> array_of(simdjson::dom::element root, const char* key) {
  std::vector<T> out;
  simdjson::dom::array array;
  if (root[key].get(array) != simdjson::SUCCESS) return out;
  for (const auto item : array) {
    if constexpr (std::is_same_v<T, std::string>) {
      out.emplace_back(item.get_string().value());
    } else if constexpr (std::is_same_v<T, float>) {
      out.push_back(static_cast<float>(item.get_double().value()));
    } else {
      out.push_back(static_cast<T>(item.get_int64().value()));
    }
  }
  return out;
}

template <class T>
std::optional<T> value_of(simdjson::dom::element root, const char* key) {
  if constexpr (std::is_same_v<T, bool>) {
    bool value = false;
    if (root[key].get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  } else {
    int64_t value = 0;
    if (root[key].get(value) != simdjson::SUCCESS) return std::nullopt;
    return static_cast<T>(value);
  }
}

std::string text_of(simdjson::dom::element root, const char* key) {
  std::string_view text;
  return root[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

Result<GgufTokenizerSource> read_gguf_source(const std::string& json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  if (parser.parse(json).get(root) != simdjson::SUCCESS) return input_error("the metadata is not JSON");
  GgufTokenizerSource source;
  source.model = text_of(root, "model");
  source.pre = text_of(root, "pre");
  source.tokens = array_of<std::string>(root, "tokens");
  source.scores = array_of<float>(root, "scores");
  source.types = array_of<int32_t>(root, "token_type");
  source.merges = array_of<std::string>(root, "merges");
  source.bos_id = value_of<uint32_t>(root, "bos_token_id");
  source.eos_id = value_of<uint32_t>(root, "eos_token_id");
  source.unk_id = value_of<uint32_t>(root, "unknown_token_id");
  source.pad_id = value_of<uint32_t>(root, "padding_token_id");
  source.eot_id = value_of<uint32_t>(root, "eot_token_id");
  source.sep_id = value_of<uint32_t>(root, "seperator_token_id");
  source.cls_id = value_of<uint32_t>(root, "cls_token_id");
  source.add_bos = value_of<bool>(root, "add_bos_token");
  source.add_eos = value_of<bool>(root, "add_eos_token");
  source.add_space_prefix = value_of<bool>(root, "add_space_prefix");
  return source;
}

Status compile(int argc, char** argv) {
  PLOW_TRY(const std::string tokenizer, read_text_file(argv[3]));
  std::string config;
  if (argc > 4) {
    PLOW_TRY(config, read_text_file(argv[4]));
  }
  PLOW_TRY(const auto table, compile_tokenizer(tokenizer, config));
  return write_file(argv[2], {reinterpret_cast<const char*>(table.data()), table.size()});
}

Status compile_gguf(char** argv) {
  PLOW_TRY(const std::string json, read_text_file(argv[3]));
  PLOW_TRY(const GgufTokenizerSource source, read_gguf_source(json));
  PLOW_TRY(const auto table, compile_tokenizer(source));
  return write_file(argv[2], {reinterpret_cast<const char*>(table.data()), table.size()});
}

struct Seconds {
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

Result<Tokenizer> open_table(const char* path) {
  PLOW_TRY(MappedFile file, MappedFile::open(path));
  const Seconds clock;
  auto tokenizer = Tokenizer::open(std::move(file));
  fmt::print("opened in {:.2f} ms\n", clock.elapsed() * 1e3);
  return tokenizer;
}

Status encode(char** argv) {
  PLOW_TRY(const Tokenizer tokenizer, open_table(argv[2]));
  PLOW_TRY(const MappedFile texts, MappedFile::open(argv[3]));
  const std::string_view flags = argv[5];
  const EncodeOptions options = {flags.find('s') != flags.npos, flags.find('p') != flags.npos};
  std::string out;
  ByteReader reader(texts.bytes());
  const Seconds clock;
  size_t failures = 0;
  while (reader.remaining() > 0) {
    const auto text = reader.read_string(reader.read<uint32_t>());
    const auto ids = tokenizer.encode(text, options);
    if (!ids.ok() && failures++ == 0) fmt::print("first failure: {}\n", ids.error().message);
    append_u32(out, ids.ok() ? static_cast<uint32_t>(ids->size()) : kFailed);
    if (ids.ok()) out.append(reinterpret_cast<const char*>(ids->data()), ids->size() * sizeof(uint32_t));
  }
  fmt::print("encoded {} bytes in {:.3f} s, {} failures\n", texts.bytes().size(), clock.elapsed(), failures);
  return write_file(argv[4], out);
}

Status decode(char** argv) {
  PLOW_TRY(const Tokenizer tokenizer, open_table(argv[2]));
  PLOW_TRY(const MappedFile file, MappedFile::open(argv[3]));
  const bool skip_special = std::string_view(argv[5]).find('k') != std::string_view::npos;
  std::string out;
  ByteReader reader(file.bytes());
  while (reader.remaining() > 0) {
    const auto count = reader.read<uint32_t>();
    if (count == kFailed) {
      append_u32(out, 0);
      continue;
    }
    std::string text;
    TokenStream stream(tokenizer, skip_special);
    std::vector<uint32_t> ids;
    for (uint32_t i = 0; i < count; ++i) ids.push_back(reader.read<uint32_t>());
    for (const uint32_t id : ids) text += stream.push(id);
    text += stream.finish();
    if (text != tokenizer.decode(ids, skip_special))
      return input_error("a stream differs from decoding at once");
    append_u32(out, static_cast<uint32_t>(text.size()));
    out += text;
  }
  return write_file(argv[4], out);
}

Status run(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "compile" && argc >= 4) return compile(argc, argv);
  if (command == "compile-gguf" && argc == 4) return compile_gguf(argv);
  if (command == "encode" && argc == 6) return encode(argv);
  if (command == "decode" && argc == 6) return decode(argv);
  return usage_error(
      "usage: tokenizer_oracle compile|compile-gguf|encode|decode ... (see the head of its source)");
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (status.ok()) return 0;
  fmt::print(stderr, "tokenizer_oracle: {}\n", status.error().message);
  return static_cast<int>(status.error().error_class);
}
