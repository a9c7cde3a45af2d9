#include "tests/fixture.h"

#include "abi/header.h"
#include "base/testing/temp_dir.h"
#include "bundle/bundle.h"
#include "tests/tiny_checkpoint.h"

#include <gtest/gtest.h>

#include <cstring>
#include <regex>
#include <span>

namespace plow {

namespace fs = std::filesystem;

namespace {

void replace_in_file(const fs::path& path, const std::string& from, const std::string& to) {
  std::string text = read_file(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " is not in " << path;
  write_file(path, text.replace(at, from.size(), to));
}

void cut(const fs::path& path) { fs::resize_file(path, fs::file_size(path) * 2 / 3); }

// Flips a bit in the middle.
void alter(const fs::path& path) {
  std::string bytes = read_file(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file(path, bytes);
}

// Changes the header and makes the digest right again, so that only the change itself can be complained
// about.
template <class Change>
void reseal(const fs::path& model, Change change) {
  std::string bytes = read_file(model);
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  change(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  seal_bundle(std::as_writable_bytes(std::span(bytes)));
  write_file(model, bytes);
}

class Fixture {
 public:
  Fixture() {
    write_tiny_checkpoint(folder_ / "tiny");
    write_tiny_checkpoint(folder_ / "no-chat", {.chat_template = false});
    break_checkpoints();
    compile("tiny");
    compile("no-chat");
    break_bundles();
    fs::create_directory(folder_ / "empty");
    write_file(folder_ / "file", "not a folder\n");
    write_file(folder_ / "not-utf8.txt", "caf\xe9");
    write_file(folder_ / "long.txt", std::string(500, 'a'));
  }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path checkpoint(const char* name) {
    fs::copy(folder_ / "tiny", folder_ / name);
    return folder_ / name;
  }
  fs::path bundle(const char* name) {
    fs::copy(folder_ / "tiny.plow", folder_ / name);
    return folder_ / name;
  }

  void compile(const std::string& name) {
    const std::string path = (folder_ / name).string();
    const ProgramResult result = run_program({{PLOWC, "--hf-dir", path, "--out", path + ".plow", "--workers",
                                               "1", "--max-ctx", "128", "--slots", "2", "--chunk", "64"},
                                              {},
                                              "",
                                              "",
                                              {},
                                              {}});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }

  void break_checkpoints() {
    write_file(checkpoint("config-not-json") / "config.json", "{\"architectures\": [");
    replace_in_file(checkpoint("unknown-architecture") / "config.json", "LlamaForCausalLM",
                    "OracleForCausalLM");
    replace_in_file(checkpoint("unknown-rope") / "config.json", "\"rope_scaling\":null",
                    "\"rope_scaling\":{\"rope_type\":\"spiral\",\"factor\":2.0}");
    replace_in_file(checkpoint("absurd-size") / "config.json", "\"hidden_size\":64",
                    "\"hidden_size\":6400000000");
    replace_in_file(checkpoint("other-shape") / "config.json", "\"intermediate_size\":96",
                    "\"intermediate_size\":80");
    replace_in_file(checkpoint("missing-tensor") / "config.json", "\"num_hidden_layers\":2",
                    "\"num_hidden_layers\":3");
    replace_in_file(checkpoint("extra-tensor") / "config.json", "\"num_hidden_layers\":2",
                    "\"num_hidden_layers\":1");
    cut(checkpoint("cut-weights") / "model.safetensors");
    fs::remove(checkpoint("no-weights") / "model.safetensors");
    fs::remove(checkpoint("no-tokenizer") / "tokenizer.json");
    replace_in_file(checkpoint("bad-tokenizer") / "tokenizer.json", "\"ByteLevel\"", "\"BitLevel\"");
    replace_in_file(checkpoint("bad-template") / "tokenizer_config.json", "{% endfor %}", "{% endif %}");
  }

  void break_bundles() {
    cut(bundle("cut.plow") / "model.pkt");
    alter(bundle("altered.plow") / "model.pkt");
    write_file(bundle("garbage.plow") / "model.pkt", std::string(4096, 'x'));
    reseal(bundle("other-isa.plow") / "model.pkt",
           [](BundleHeader& header) { header.isa = static_cast<Isa>(77); });
    reseal(bundle("other-version.plow") / "model.pkt", [](BundleHeader& header) { header.abi_version = 99; });
    fs::remove(bundle("no-receipt.plow") / "verify.json");
    reseal(bundle("other-receipt.plow") / "model.pkt", [](BundleHeader& header) { ++header.scratch_bytes; });
    cut(bundle("cut-tape.plow") / "weights.tape");
    alter(bundle("altered-tape.plow") / "weights.tape");
    cut(bundle("cut-tokenizer.plow") / "tokenizer.bin");
    write_file(bundle("bad-generation.plow") / "generation.json", "[]");
    write_file(bundle("raising-template.plow") / "chat_template.jinja",
               "{{ raise_exception('only tools may speak') }}");
    write_file(bundle("endless-template.plow") / "chat_template.jinja",
               "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}");
  }

  TempDir scratch_;
  const fs::path& folder_ = scratch_.path();
};

}  // namespace

const fs::path& fixture_folder() {
  static const Fixture fixture;
  return fixture.folder();
}

ProgramRun parse_command(const std::string& command) {
  ProgramRun run;
  std::string word;
  bool quoted = false, any = false;
  const auto finish_word = [&] {
    if (any) run.arguments.push_back(word);
    word.clear();
    any = false;
  };
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      finish_word();
    } else {
      word += c;
      any = true;
    }
  }
  finish_word();
  for (std::string& argument : run.arguments) {
    const size_t at = argument.find("DIR");
    if (at != std::string::npos) argument.replace(at, 3, fixture_folder().string());
  }
  run.arguments[0] = run.arguments[0] == "plowc" ? PLOWC : PLOWRT;
  return run;
}

std::string normalised(std::string text) {
  const std::string folder = fixture_folder().string();
  for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder))
    text.replace(at, folder.size(), "DIR");
  text = std::regex_replace(text, std::regex("[0-9a-f]{32}([0-9a-f]{32})?"), "DIGEST");
  return std::regex_replace(
      text, std::regex("(have|with|and has|and says|it has|packets 0 to) [0-9]+(?![0-9x])"), "$1 N");
}

}  // namespace plow
