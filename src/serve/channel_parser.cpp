#include "serve/channel_parser.h"

#include "base/json_string.h"

#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace plow {
namespace {

constexpr std::string_view kMessage = "<|message|>", kChannel = "<|channel|>", kStart = "<|start|>";
constexpr std::array<std::string_view, 4> kHarmonyEnds = {"<|end|>", "<|call|>", "<|return|>", kStart};
constexpr std::string_view kGemmaThought = "<|channel>", kGemmaThoughtEnd = "<channel|>";
constexpr std::string_view kGemmaCall = "<|tool_call>", kGemmaCallEnd = "<tool_call|>";
constexpr std::string_view kQuote = "<|\"|>";

// Where the first of the marks stands, and which it is; what comes before is certain.
struct Mark {
  size_t certain = 0;
  std::string_view found;  // empty: none, yet
};
Mark first_mark(std::string_view text, std::span<const std::string_view> marks) {
  Mark first{text.size(), {}};
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    if (at < first.certain) first = {at, mark};
  }
  if (!first.found.empty()) return first;
  for (const std::string_view mark : marks)
    first.certain = std::min(first.certain, text.size() - begun_tag(text, mark));
  return first;
}

// The word behind `mark`, up to a blank or the next mark.
std::string_view word_behind(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + mark.size());
  return text.substr(0, text.find_first_of(" \n<"));
}

// A reader of Gemma's notation that writes JSON.
class GemmaReader {
 public:
  explicit GemmaReader(std::string_view text) : rest_(text) {}

  std::optional<std::string> read() {
    if (!value(0) || !rest_.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  static constexpr int kMostDepth = 64;  // as of a request

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  bool quoted() {
    const size_t end = rest_.find(kQuote);
    if (end == std::string_view::npos) return false;
    append_json_string(out_, rest_.substr(0, end));
    rest_.remove_prefix(end + kQuote.size());
    return true;
  }

  // A number, true, false, null; anything else that stands there is a text without its quotes.
  bool bare(std::string_view ends) {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(ends));
    if (word.empty()) return false;
    rest_.remove_prefix(word.size());
    boost::system::error_code error;
    const boost::json::value read = boost::json::parse(word, error);
    if (!error && !read.is_structured()) {
      out_ += word;
    } else {
      append_json_string(out_, word);
    }
    return true;
  }

  bool member(int depth) {
    if (take(kQuote)) {
      if (!quoted()) return false;
    } else {
      const size_t end = rest_.find(':');
      if (end == std::string_view::npos) return false;
      append_json_string(out_, rest_.substr(0, end));
      rest_.remove_prefix(end);
    }
    if (!take(":")) return false;
    out_ += ':';
    return value(depth);
  }

  bool list(char end, int depth) {
    out_ += end == '}' ? '{' : '[';
    for (bool first = true; !take(std::string_view(&end, 1)); first = false) {
      if (!first) {
        if (!take(",")) return false;
        out_ += ',';
      }
      if (!(end == '}' ? member(depth) : value(depth))) return false;
    }
    out_ += end;
    return true;
  }

  bool value(int depth) {
    if (depth > kMostDepth) return false;
    if (take(kQuote)) return quoted();
    if (take("{")) return list('}', depth + 1);
    if (take("[")) return list(']', depth + 1);
    return bare(",}]");
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

std::optional<std::string> json_of_gemma(std::string_view arguments) { return GemmaReader(arguments).read(); }

std::vector<ToolEvent> ChannelParser::push(std::string_view piece) {
  held_ += piece;
  std::vector<ToolEvent> events;
  while (!held_.empty() && step(events)) {
  }
  return events;
}

bool ChannelParser::step(std::vector<ToolEvent>& events) {
  if (dialect_ == ToolDialect::kGemma) return step_gemma(events);
  if (state_ == State::kHeader) return step_header(events);
  if (state_ == State::kBetween) {
    const size_t start = held_.find(kStart);
    if (start == std::string::npos) return false;
    held_.erase(0, start + kStart.size());
    state_ = State::kHeader;
    return true;
  }
  const Mark end = first_mark(held_, kHarmonyEnds);
  tell(events, std::string_view(held_).substr(0, end.certain));
  held_.erase(0, end.certain + end.found.size());
  if (end.found.empty()) return false;
  if (state_ == State::kCall) end_call(events);
  state_ = end.found == kStart ? State::kHeader : State::kBetween;
  return true;
}

// "assistant to=functions.NAME<|channel|>commentary json<|message|>", in any order; the first message's
// header has no "assistant", since the prompt ends with it.
bool ChannelParser::step_header(std::vector<ToolEvent>& events) {
  const size_t end = held_.find(kMessage);
  if (end == std::string::npos) {
    // An answer that does not begin as a message does is text.
    const size_t first = std::min(held_.find_first_not_of(' '), held_.size());
    const std::string_view begun = std::string_view(held_).substr(first);
    const auto may_become = [&](std::string_view header) {
      return begun.starts_with(header) || header.starts_with(begun);
    };
    if (may_become(kChannel) || may_become("to=") || may_become("assistant")) return false;
    state_ = State::kText;
    return true;
  }
  const std::string header = held_.substr(0, end);
  held_.erase(0, end + kMessage.size());
  const std::string_view name = word_behind(header, "to=functions.");
  if (!name.empty()) {
    events.push_back({ToolEvent::Kind::kCall, std::string(name)});
    has_arguments_ = false;
    state_ = State::kCall;
  } else {
    state_ = word_behind(header, kChannel) == "analysis" ? State::kThought : State::kText;
  }
  return true;
}

bool ChannelParser::step_gemma(std::vector<ToolEvent>& events) {
  switch (state_) {
    case State::kThoughtName: {
      const size_t line = held_.find('\n');
      if (line == std::string::npos) return false;
      held_.erase(0, line + 1);
      state_ = State::kThought;
      return true;
    }
    case State::kCall: {
      const size_t end = held_.find(kGemmaCallEnd);
      if (end == std::string::npos) return false;
      const std::string_view call = std::string_view(held_).substr(0, end);
      const size_t brace = call.find('{');
      const auto arguments =
          brace == std::string_view::npos ? std::nullopt : json_of_gemma(call.substr(brace));
      if (arguments && call.starts_with("call:")) {
        events.push_back({ToolEvent::Kind::kCall, std::string(call.substr(5, brace - 5))});
        events.push_back({ToolEvent::Kind::kArguments, *arguments});
      } else {
        events.push_back({ToolEvent::Kind::kText, std::string(call)});  // no call: not to be lost
      }
      held_.erase(0, end + kGemmaCallEnd.size());
      state_ = State::kText;
      return true;
    }
    case State::kThought: {
      const Mark end = first_mark(held_, std::span(&kGemmaThoughtEnd, 1));
      tell(events, std::string_view(held_).substr(0, end.certain));
      held_.erase(0, end.certain + end.found.size());
      if (end.found.empty()) return false;
      state_ = State::kText;
      return true;
    }
    default:
      break;
  }
  constexpr std::array<std::string_view, 2> kMarks = {kGemmaThought, kGemmaCall};
  const Mark mark = first_mark(held_, kMarks);
  tell(events, std::string_view(held_).substr(0, mark.certain));
  held_.erase(0, mark.certain + mark.found.size());
  if (mark.found.empty()) return false;
  state_ = mark.found == kGemmaCall ? State::kCall : State::kThoughtName;
  return true;
}

void ChannelParser::tell(std::vector<ToolEvent>& events, std::string_view text) {
  if (text.empty()) return;
  const auto kind = state_ == State::kThought ? ToolEvent::Kind::kThought
                    : state_ == State::kCall  ? ToolEvent::Kind::kArguments
                                              : ToolEvent::Kind::kText;
  if (kind == ToolEvent::Kind::kArguments) has_arguments_ = true;
  events.push_back({kind, std::string(text)});
}

void ChannelParser::end_call(std::vector<ToolEvent>& events) {
  if (!has_arguments_) events.push_back({ToolEvent::Kind::kArguments, "{}"});
}

std::vector<ToolEvent> ChannelParser::finish() {
  std::vector<ToolEvent> events;
  const bool gemma_call = dialect_ == ToolDialect::kGemma && state_ == State::kCall;
  if (state_ == State::kText || state_ == State::kThought || (state_ == State::kCall && !gemma_call))
    tell(events, held_);
  if (state_ == State::kCall && !gemma_call) end_call(events);
  held_.clear();
  return events;
}

}  // namespace plow
