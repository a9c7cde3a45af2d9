#include "plowrt/run_command.h"

#include "base/mapped_file.h"
#include "console/interrupt.h"
#include "console/terminal.h"
#include "plowrt/answer_stats.h"
#include "plowrt/model.h"
#include "plowrt/prompt.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <iterator>

namespace plow {

namespace {

namespace json = boost::json;

constexpr size_t kMaxPromptBytes = size_t{64}
                                   << 20;  // far beyond the longest contexts, some ten million tokens

Result<std::string> read_prompt(const RunOptions& options) {
  if (options.prompt.has_value() == !options.prompt_file.empty()) {
    return usage_error("give the prompt with --prompt or with --prompt-file, one of the two.");
  }
  if (options.prompt) return *options.prompt;
  if (options.prompt_file != "-") return read_text_file(options.prompt_file, kMaxPromptBytes);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (text.size() > kMaxPromptBytes)
    return input_error(fmt::format("standard input has more than {} bytes", kMaxPromptBytes));
  return text;
}

Result<std::vector<uint32_t>> encode_prompt(const Model& model, const RunOptions& options,
                                            const std::string& prompt) {
  if (options.raw) return model.tokenizer.encode(prompt);
  if (!model.chat_template) {
    return usage_error(
        fmt::format("{} has no chat template: it continues text, it does not chat. Add --raw.", model.name));
  }
  json::array messages;
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return encode_chat(model.tokenizer, *model.chat_template, messages);
}

json::object answer_json(const Model& model, const Session::Answer& answer, const SamplingParams& sampling,
                         std::span<const uint32_t> prompt) {
  const Generated& g = answer.generated;
  const AnswerStats stats = answer_stats(answer);
  return {{"model", model.name},
          {"text", model.tokenizer.decode(g.tokens, true)},
          {"prompt_tokens", json::array(prompt.begin(), prompt.end())},
          {"tokens", json::array(g.tokens.begin(), g.tokens.end())},
          {"logprobs", json::array(g.logprobs.begin(), g.logprobs.end())},
          {"finish_reason", finish_reason(g.reason)},
          {"seed", sampling.seed},
          {"isa", isa_level_name(model.engine.isa_level())},
          {"timings",
           {{"prompt_seconds", stats.prompt_seconds},
            {"prompt_tokens_per_second", stats.prompt_rate},
            {"decode_seconds", stats.decode_seconds},
            {"decode_tokens_per_second", stats.decode_rate}}}};
}

}  // namespace

Status run_command(const RunOptions& options) {
  PLOW_TRY(const std::string prompt, read_prompt(options));
  PLOW_TRY(Model model, load_model(options.bundle, options.engine));
  PLOW_TRY(const std::vector<uint32_t> ids, encode_prompt(model, options, prompt));
  PLOW_TRY(Session session, Session::open(model.engine));
  GenerateOptions generate_options;
  generate_options.max_tokens = options.max_tokens;
  generate_options.sampling = apply_sampling(model.defaults.sampling, options.sampling);
  if (!options.ignore_eos) generate_options.stop_ids = model.defaults.stop_ids;

  catch_interrupts();
  TokenStream stream(model.tokenizer, true);
  const auto show = [&](const std::string& text) {
    if (options.json) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  PLOW_TRY(const Session::Answer answer, session.answer(ids, generate_options, [&](uint32_t token, float) {
    show(stream.push(token));
    return interrupted() == 0;
  }));
  show(stream.finish() + "\n");
  if (options.json) {
    fmt::print("{}\n", json::serialize(answer_json(model, answer, generate_options.sampling, ids)));
    return {};
  }
  std::string line = stats_line(answer_stats(answer));
  if ((generate_options.sampling.flags & kSampleGreedy) == 0)
    line += fmt::format(", seed {}", generate_options.sampling.seed);
  std::fflush(stdout);
  fmt::print(stderr, "{}\n", Terminal::of(STDERR_FILENO).dim("[" + line + "]"));
  return {};
}

}  // namespace plow
