#include "plowrt/chat_command.h"

#include "console/interrupt.h"
#include "console/terminal.h"
#include "plowrt/answer_stats.h"
#include "plowrt/line_reader.h"
#include "plowrt/model.h"
#include "plowrt/prompt.h"

#include <boost/json.hpp>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>

namespace plow {

namespace {

namespace json = boost::json;

constexpr const char* kHelp =
    "/system TEXT        a new system message; the conversation begins anew\n"
    "/reset              the conversation begins anew\n"
    "/set                show the parameters of sampling\n"
    "/set NAME VALUE     temperature, top-k, top-p, min-p, repetition-penalty, presence-penalty,\n"
    "                    frequency-penalty, seed, max-tokens\n"
    "/quit               end (or Ctrl-D)\n"
    "A line that ends in \\ goes on in the next. Ctrl-C stops an answer.\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The first word, and the rest.
std::pair<std::string_view, std::string_view> split_word(std::string_view text) {
  text = trimmed(text);
  const size_t space = text.find_first_of(" \t");
  if (space == std::string_view::npos) return {text, {}};
  return {text.substr(0, space), trimmed(text.substr(space))};
}

class Chat {
 public:
  // REQUIRES that `model` outlives the chat and that `session` is of its engine.
  Chat(const Model& model, Session session, const ChatOptions& options)
      : model_(model),
        session_(std::move(session)),
        sampling_(options.sampling),
        max_tokens_(options.max_tokens),
        system_(options.system),
        interactive_(Terminal::of(STDIN_FILENO).interactive),
        terminal_(Terminal::of(STDOUT_FILENO)) {
    reset();
  }

  void run() {
    if (interactive_) fmt::print("{}: type a message, or /help.\n", terminal_.bold(model_.name));
    std::string line;
    while (read_turn(line)) {
      const std::string_view text = trimmed(line);
      if (text.empty()) continue;
      if (text.front() != '/') {
        say(std::string(text));
      } else if (!command(text)) {
        return;
      }
    }
  }

 private:
  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
  }

  // A turn of the user, which may be several lines; false at the end of the input.
  bool read_turn(std::string& turn) {
    turn.clear();
    while (true) {
      if (interactive_) {
        fmt::print("{}", terminal_.bold(turn.empty() ? "> " : ". "));
        std::fflush(stdout);
      }
      std::string line;
      const LineReader::Outcome outcome = reader_.read(line);
      if (interrupted() == SIGTERM) return false;
      if (outcome == LineReader::Outcome::kInterrupted) {
        clear_interrupt();
        turn.clear();
        fmt::print("\n(/quit or Ctrl-D ends the chat)\n");
        continue;
      }
      if (outcome == LineReader::Outcome::kEnd) {
        if (interactive_) fmt::print("\n");
        return !turn.empty();
      }
      if (!line.ends_with('\\')) {
        turn += line;
        return true;
      }
      turn += line.substr(0, line.size() - 1) + "\n";
    }
  }

  // False when the chat ends.
  bool command(std::string_view text) {
    const auto [name, rest] = split_word(text);
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/help") {
      fmt::print("{}", kHelp);
    } else if (name == "/reset") {
      reset();
    } else if (name == "/system") {
      system_ = rest;
      reset();
    } else if (name == "/set") {
      set(rest);
    } else {
      note(fmt::format("there is no command {}; /help lists them", name));
    }
    return true;
  }

  void set(std::string_view text) {
    const auto [name, value] = split_word(text);
    if (name.empty()) {
      const SamplingParams p = apply_sampling(model_.defaults.sampling, sampling_);
      const bool greedy = (p.flags & kSampleGreedy) != 0;
      note(
          fmt::format("temperature {}, top-k {}, top-p {}, min-p {}, repetition-penalty {}, presence-penalty "
                      "{}, frequency-penalty {}, "
                      "seed {}, max-tokens {}",
                      greedy ? 0 : p.temperature, p.top_k, p.top_p, p.min_p, p.repetition_penalty,
                      p.presence_penalty, p.frequency_penalty,
                      sampling_.seed ? std::to_string(*sampling_.seed) : "new for each answer", max_tokens_));
    } else if (name == "max-tokens") {
      uint32_t tokens = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), tokens);
      if (error != std::errc{} || end != value.data() + value.size() || tokens == 0) {
        note(fmt::format("max-tokens must be a whole number from 1, not '{}'", value));
      } else {
        max_tokens_ = tokens;
      }
    } else if (const Status status = set_sampling(sampling_, name, value); !status.ok()) {
      note(status.error().message);
    }
  }

  // One exchange. When it fails the conversation is as it was.
  void say(std::string text) {
    messages_.push_back({{"role", "user"}, {"content", text}});
    const auto answer = answer_last();
    if (!answer.ok()) {
      messages_.pop_back();
      note(answer.error().message);
      return;
    }
    messages_.push_back(
        {{"role", "assistant"}, {"content", model_.tokenizer.decode(answer->generated.tokens, true)}});
    std::string line = stats_line(answer_stats(*answer));
    if (answer->generated.reason == StopReason::kContext) line += "; the context is full: /reset begins anew";
    if (interactive_) note(line);
  }

  Result<Session::Answer> answer_last() {
    PLOW_TRY(const auto prompt, encode_chat(model_.tokenizer, *model_.chat_template, messages_));
    GenerateOptions options;
    options.max_tokens = max_tokens_;
    options.sampling = apply_sampling(model_.defaults.sampling, sampling_);
    options.stop_ids = model_.defaults.stop_ids;
    TokenStream stream(model_.tokenizer, true);
    const auto show = [](const std::string& piece) {
      fmt::print("{}", piece);
      std::fflush(stdout);
    };
    auto answer = session_.answer(prompt, options, [&](uint32_t token, float) {
      show(stream.push(token));
      return interrupted() == 0;
    });
    if (answer.ok()) show(stream.finish() + "\n");
    if (interrupted() == SIGINT) clear_interrupt();
    return answer;
  }

  void note(const std::string& text) {
    fmt::print("{}\n", terminal_.dim("[" + text + "]"));
    std::fflush(stdout);
  }

  const Model& model_;
  Session session_;
  SamplingOptions sampling_;
  uint32_t max_tokens_;
  std::string system_;
  json::array messages_;
  LineReader reader_;
  bool interactive_;
  Terminal terminal_;
};

}  // namespace

Status chat_command(const ChatOptions& options) {
  PLOW_TRY(Model model, load_model(options.bundle, options.engine));
  if (!model.chat_template) {
    return usage_error(fmt::format(
        "{} has no chat template: it continues text, it does not chat. Use plowrt run --raw.", model.name));
  }
  PLOW_TRY(Session session, Session::open(model.engine));
  catch_interrupts();
  Chat(model, std::move(session), options).run();
  return {};
}

}  // namespace plow
