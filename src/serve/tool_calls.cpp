#include "serve/tool_calls.h"

#include <boost/json.hpp>

#include <algorithm>
#include <utility>

namespace plow {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";

bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

std::string unquoted(const std::string& json_string) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(json_string, error);
  return !error && value.is_string() ? std::string(value.get_string()) : json_string;
}

}  // namespace

ToolDialect tool_dialect_of(std::string_view source) {
  const auto has = [&](std::string_view text) { return source.find(text) != std::string_view::npos; };
  if (has("<|channel|>") && has("<|message|>")) return ToolDialect::kHarmony;
  if (has("<|tool_call>call:")) return ToolDialect::kGemma;
  if (!has("tools")) return ToolDialect::kNone;
  if (has("<tool_call>")) return ToolDialect::kHermes;
  // Llama 3.1 to 3.3: the template's own words ask for this form.
  if (has("\"parameters\"") && has("<|eot_id|>")) return ToolDialect::kLlama3;
  return ToolDialect::kNone;
}

size_t begun_tag(std::string_view text, std::string_view tag) {
  for (size_t n = std::min(tag.size() - 1, text.size()); n > 0; --n) {
    if (text.substr(text.size() - n) == tag.substr(0, n)) return n;
  }
  return 0;
}

size_t CallReader::feed(std::string_view text, std::vector<ToolEvent>& events) {
  size_t taken = 0;
  while (taken < text.size() && !done()) {
    if (take(text[taken], events)) ++taken;
  }
  return taken;
}

bool CallReader::take(char c, std::vector<ToolEvent>& events) {
  switch (state_) {
    case State::kOpen:
      if (c == '{') state_ = State::kKey;
      return true;
    case State::kKey:
      if (c == '"') {
        key_.clear();
        state_ = State::kInKey;
      } else if (c == '}') {
        state_ = State::kDone;
      }
      return true;
    case State::kInKey:  // the keys of calls have no escapes
      if (c == '"') {
        state_ = State::kColon;
      } else {
        key_ += c;
      }
      return true;
    case State::kColon:
      if (c == ':') state_ = State::kValue;
      return true;
    case State::kValue:
      if (is_blank(c)) return true;
      value_.clear();
      depth_ = 0;
      in_string_ = escaped_ = false;
      state_ = State::kInValue;
      return false;
    case State::kInValue:
      return take_value(c, events);
    case State::kNext:
      if (c == ',') state_ = State::kKey;
      if (c == '}') {
        if (!has_arguments_) events.push_back({ToolEvent::Kind::kArguments, "{}"});
        state_ = State::kDone;
      }
      return true;
    case State::kDone:
      break;
  }
  return true;
}

bool CallReader::take_value(char c, std::vector<ToolEvent>& events) {
  const bool of_arguments = key_ == arguments_;
  const bool ends_before = !in_string_ && depth_ == 0 && (c == ',' || c == '}' || is_blank(c));
  if (ends_before) {  // a number, true, false or null
    end_value(events);
    return false;
  }
  if (of_arguments) {
    if (!events.empty() && events.back().kind == ToolEvent::Kind::kArguments) {
      events.back().text += c;
    } else {
      events.push_back({ToolEvent::Kind::kArguments, std::string(1, c)});
    }
    has_arguments_ = true;
  } else {
    value_ += c;
  }
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    --depth_;
  } else {
    return true;
  }
  if (!in_string_ && depth_ == 0) end_value(events);
  return true;
}

void CallReader::end_value(std::vector<ToolEvent>& events) {
  if (key_ == "name") events.push_back({ToolEvent::Kind::kCall, unquoted(value_)});
  state_ = State::kNext;
}

void ToolCallParser::begin_call() {
  call_.emplace(arguments_key(dialect_));
  begun_ = true;
  ++n_calls_;
}

std::vector<ToolEvent> ToolCallParser::push(std::string_view piece) {
  held_ += piece;
  std::vector<ToolEvent> events;
  while (!held_.empty() && step(events)) {
  }
  return events;
}

bool ToolCallParser::step(std::vector<ToolEvent>& events) {
  if (call_) {
    held_.erase(0, call_->feed(held_, events));
    if (!call_->done()) return false;
    call_.reset();
    closing_ = true;
    return true;
  }
  if (dialect_ == ToolDialect::kHermes) return step_text(events);
  if (!closing_ && begun_) {  // an answer of text
    events.push_back({ToolEvent::Kind::kText, std::exchange(held_, {})});
    return false;
  }
  // Before the first call, or between two: what is neither blank nor ";" decides.
  held_.erase(0, std::min(held_.find_first_not_of(closing_ ? " \t\r\n;" : kBlanks.data()), held_.size()));
  if (held_.empty()) return false;
  if (held_[0] == '{') {
    begin_call();
  } else {
    begun_ = true;
    closing_ = false;
  }
  return true;
}

// Text goes out but for blanks at its end, which are dropped in front of a call, and what may become a tag.
bool ToolCallParser::step_text(std::vector<ToolEvent>& events) {
  if (closing_) {
    const size_t end = held_.find(kCallEndTag);
    if (end == std::string::npos) return false;
    held_.erase(0, end + kCallEndTag.size());
    closing_ = false;
    return true;
  }
  const size_t tag = held_.find(kCallTag);
  size_t end = tag != std::string::npos ? tag : held_.size() - begun_tag(held_, kCallTag);
  while (end > 0 && is_blank(held_[end - 1])) --end;
  if (end > 0) {
    events.push_back({ToolEvent::Kind::kText, held_.substr(0, end)});
    held_.erase(0, end);
    begun_ = true;
  }
  const size_t now = held_.find(kCallTag);
  if (now == std::string::npos) return false;
  held_.erase(0, now + kCallTag.size());
  begin_call();
  return true;
}

std::vector<ToolEvent> ToolCallParser::finish() {
  std::vector<ToolEvent> events;
  const bool text = !call_ && !closing_ && n_calls_ == 0 && !held_.empty();
  if (text) events.push_back({ToolEvent::Kind::kText, held_});
  held_.clear();
  return events;
}

ThoughtSplitter::Piece ThoughtSplitter::push(std::string_view piece) {
  held_ += piece;
  Piece out;
  if (state_ == State::kBefore) {
    const size_t begin = std::min(held_.find_first_not_of(kBlanks), held_.size());
    const std::string_view rest = std::string_view(held_).substr(begin);
    if (rest.starts_with(kThink)) {
      held_.erase(0, begin + kThink.size());
      state_ = State::kInside;
    } else if (kThink.starts_with(rest)) {
      return out;  // it may still become the tag
    } else {
      state_ = State::kAfter;
    }
  }
  if (state_ == State::kInside) {
    const size_t end = held_.find(kThinkEnd);
    const size_t certain = end != std::string::npos ? end : held_.size() - begun_tag(held_, kThinkEnd);
    out.thought = held_.substr(0, certain);
    held_.erase(0, end != std::string::npos ? end + kThinkEnd.size() : certain);
    if (end == std::string::npos) return out;
    state_ = State::kBehind;
  }
  if (state_ == State::kBehind) {  // blanks between the thoughts and the answer belong to neither
    held_.erase(0, std::min(held_.find_first_not_of(kBlanks), held_.size()));
    if (held_.empty()) return out;
    state_ = State::kAfter;
  }
  out.text = std::exchange(held_, {});
  return out;
}

ThoughtSplitter::Piece ThoughtSplitter::finish() {
  Piece out;
  (state_ == State::kInside ? out.thought : out.text) = std::exchange(held_, {});
  if (state_ == State::kBehind) out.text.clear();
  return out;
}

}  // namespace plow
