#include "text/tokenizer/decode.h"

#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/normalize.h"
#include "text/tokenizer/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace plow {

namespace {

// A token may grow to this size by replacements, so that a chain of them cannot double it again and again.
constexpr size_t kMaxGrownToken = size_t{1} << 20;

std::string replace_bounded(std::string_view token, std::span<const TextSpan> matches,
                            std::string_view content) {
  size_t size = token.size() + matches.size() * content.size();
  for (const TextSpan& match : matches) size -= match.end - match.begin;
  if (size > std::max(kMaxGrownToken, token.size())) return std::string(token);
  return replace_spans(token, matches, content);
}

std::string replace_all(std::string_view text, std::string_view needle, std::string_view content) {
  std::vector<TextSpan> matches;
  find_all_literal(text, needle, matches);
  return replace_bounded(text, matches, content);
}

// The byte that "<0xE2>" stands for. Two digits, or a sign and one digit, since the library reads them with
// Rust's from_str_radix.
std::optional<uint8_t> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(high * 16 + low);
}

// decoders/wordpiece.rs, cleanup(): spaces that tokenization put before punctuation and English contractions.
std::string clean_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplacements = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kReplacements) text = replace_all(text, from, to);
  return text;
}

// Cuts up to `a` of the character from the front and up to `b` from the back.
std::string strip_token(std::string_view token, const ComponentView& c) {
  for (uint32_t n = 0; n < c.a && token.starts_with(c.content); ++n) token.remove_prefix(c.content.size());
  for (uint32_t n = 0; n < c.b && token.ends_with(c.content); ++n) token.remove_suffix(c.content.size());
  return std::string(token);
}

// A step that makes one token of one token. `is_first` and `is_last`: its place in the text.
std::string map_token(const ComponentView& c, const std::optional<Regex>& regex, std::string_view token,
                      bool is_first, bool is_last) {
  switch (c.kind) {
    case ComponentKind::kReplaceString:
      return replace_all(token, c.pattern, c.content);
    case ComponentKind::kReplaceRegex: {
      std::vector<TextSpan> matches;
      // A token on which the expression takes too many steps stays as it is: decoding has no errors.
      if (!regex->find_all(token, matches).ok()) return std::string(token);
      return replace_bounded(token, matches, c.content);
    }
    case ComponentKind::kStripDecoder:
      return strip_token(token, c);
    case ComponentKind::kMetaspaceDecoder: {
      const bool drop = is_first && static_cast<PrependScheme>(c.a) != PrependScheme::kNever;
      return replace_all(token, c.content, drop ? "" : " ");
    }
    case ComponentKind::kWordPieceDecoder: {
      std::string text(token);
      if (!is_first) text = token.starts_with(c.content) ? text.substr(c.content.size()) : " " + text;
      return c.a != 0 ? clean_up(std::move(text)) : text;
    }
    case ComponentKind::kBpeDecoder:
      return replace_all(token, c.content, is_last ? "" : " ");
    default:
      return std::string(token);
  }
}

bool makes_one_token(ComponentKind kind) {
  return kind == ComponentKind::kByteLevelDecoder || kind == ComponentKind::kFuse;
}

bool is_valid_decoder(const ComponentView& c) {
  switch (c.kind) {
    case ComponentKind::kReplaceString:
    case ComponentKind::kReplaceRegex:
    case ComponentKind::kByteLevelDecoder:
    case ComponentKind::kByteFallback:
    case ComponentKind::kFuse:
    case ComponentKind::kWordPieceDecoder:
    case ComponentKind::kBpeDecoder:
      return true;
    case ComponentKind::kStripDecoder:
    case ComponentKind::kMetaspaceDecoder:
      return is_one_character(c.content);
    default:
      return false;
  }
}

}  // namespace

Result<Decoder> Decoder::create(std::span<const ComponentView> components, bool join_with_spaces) {
  Decoder decoder;
  decoder.join_with_spaces_ = join_with_spaces;
  bool one_token = false;
  for (const ComponentView& component : components) {
    if (!is_valid_decoder(component)) {
      return input_error(
          fmt::format("component {} is no valid decoder", static_cast<uint32_t>(component.kind)));
    }
    Step step = {component, std::nullopt, one_token};
    if (component.kind == ComponentKind::kReplaceRegex) {
      PLOW_TRY(step.regex, Regex::compile(component.pattern));
    }
    decoder.steps_.push_back(std::move(step));
    one_token |= makes_one_token(component.kind);
  }
  return decoder;
}

std::string Decoder::token_bytes(std::string_view piece) const {
  std::string token(piece);
  for (const Step& step : steps_) {
    if (step.component.kind == ComponentKind::kByteLevelDecoder)
      return byte_level_bytes(token).value_or(token);
    if (step.component.kind == ComponentKind::kFuse) break;  // what follows is about the ends of the text
    if (step.component.kind == ComponentKind::kByteFallback) {
      if (const auto byte = fallback_byte(token)) return std::string(1, static_cast<char>(*byte));
      continue;
    }
    if (step.component.kind != ComponentKind::kStripDecoder) {
      token = map_token(step.component, step.regex, token, false, false);
    }
  }
  return token;
}

DecodeStream::DecodeStream(const Decoder& decoder) : decoder_(&decoder), states_(decoder.steps_.size() + 1) {}

void DecodeStream::push(std::string_view piece) {
  if (decoder_->join_with_spaces_ && states_.back().tokens++ > 0) out_ += ' ';
  deliver(0, piece);
}

void DecodeStream::finish() {
  for (size_t step = 0; step < decoder_->steps_.size(); ++step) finish_step(step);
  states_.assign(states_.size(), State{});
}

// `text` is a whole token, or a part of the one token where the step takes parts.
void DecodeStream::deliver(size_t step, std::string_view text) {
  if (step == decoder_->steps_.size()) {
    out_ += text;
    return;
  }
  const Decoder::Step& s = decoder_->steps_[step];
  State& state = states_[step];
  const ComponentKind kind = s.component.kind;
  if (kind == ComponentKind::kFuse) {
    deliver(step + 1, text);
  } else if (s.takes_parts && kind == ComponentKind::kStripDecoder && s.component.b == 0) {
    strip_parts(step, text);
  } else if (s.takes_parts) {
    state.held += text;  // until finish(): the step needs the whole
    state.holds_token = true;
  } else if (kind == ComponentKind::kByteLevelDecoder) {
    push_bytes(step, text);
  } else if (kind == ComponentKind::kByteFallback) {
    push_fallback(step, text);
  } else if (kind == ComponentKind::kBpeDecoder) {
    // Whether a token is the last shows when the next one comes.
    const std::string previous = std::exchange(state.held, std::string(text));
    if (std::exchange(state.holds_token, true)) {
      deliver(step + 1, map_token(s.component, s.regex, previous, false, false));
    }
  } else {
    deliver(step + 1, map_token(s.component, s.regex, text, state.tokens++ == 0, false));
  }
}

void DecodeStream::finish_step(size_t step) {
  const Decoder::Step& s = decoder_->steps_[step];
  State& state = states_[step];
  const ComponentKind kind = s.component.kind;
  if (s.takes_parts) {
    if (!state.holds_token) return;
    const std::string whole = std::move(state.held);
    if (kind == ComponentKind::kByteLevelDecoder) {
      std::string text;
      append_lossy_utf8(text, byte_level_bytes(whole).value_or(whole));
      deliver(step + 1, text);
    } else if (kind == ComponentKind::kByteFallback) {
      push_fallback(step, whole);
      flush_fallback(step);
    } else {
      deliver(step + 1, map_token(s.component, s.regex, whole, true, true));
    }
  } else if (kind == ComponentKind::kByteLevelDecoder) {
    std::string text;
    append_lossy_utf8(text, state.held);
    deliver(step + 1, text);
  } else if (kind == ComponentKind::kByteFallback) {
    flush_fallback(step);
  } else if (kind == ComponentKind::kBpeDecoder && state.holds_token) {
    deliver(step + 1, map_token(s.component, s.regex, state.held, false, true));
  }
}

// ByteLevel: all tokens are one run of bytes. What is a character, or can no longer become one, goes on.
void DecodeStream::push_bytes(size_t step, std::string_view token) {
  std::string& held = states_[step].held;
  held += byte_level_bytes(token).value_or(std::string(token));
  std::string text;
  size_t done = 0;
  while (done < held.size()) {
    const std::string_view rest = std::string_view(held).substr(done);
    const Utf8Prefix prefix = classify_utf8(rest);
    if (prefix.kind == Utf8Prefix::Kind::kIncomplete) break;
    text +=
        prefix.kind == Utf8Prefix::Kind::kCharacter ? rest.substr(0, prefix.bytes) : kReplacementCharacter;
    done += prefix.bytes;
  }
  held.erase(0, done);
  deliver(step + 1, text);
}

// ByteFallback: a run of byte tokens is text if all of it is UTF-8, else one U+FFFD a byte.
void DecodeStream::push_fallback(size_t step, std::string_view token) {
  if (const auto byte = fallback_byte(token)) {
    states_[step].held.push_back(static_cast<char>(*byte));
    return;
  }
  flush_fallback(step);
  deliver(step + 1, token);
}

void DecodeStream::flush_fallback(size_t step) {
  const std::string run = std::exchange(states_[step].held, {});
  if (run.empty()) return;
  if (!first_invalid_utf8(run)) {
    deliver(step + 1, run);
    return;
  }
  for (size_t i = 0; i < run.size(); ++i) deliver(step + 1, kReplacementCharacter);
}

// Strip at the start only, on a token that comes in parts.
void DecodeStream::strip_parts(size_t step, std::string_view part) {
  const ComponentView& c = decoder_->steps_[step].component;
  State& state = states_[step];
  while (state.strips && !part.empty()) {
    if (state.stripped < c.a && part.starts_with(c.content)) {
      part.remove_prefix(c.content.size());
      ++state.stripped;
    } else {
      state.strips = false;
    }
  }
  if (!part.empty()) deliver(step + 1, part);
}

}  // namespace plow
