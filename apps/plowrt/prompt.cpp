#include "plowrt/prompt.h"

#include "text/encode_segments.h"

#include <time.h>

#include <optional>
#include <string>

namespace plow {

namespace {

LocalTime local_time() {
  const std::time_t now = ::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return {
      parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, 0};
}

boost::json::object special_token_names(const Tokenizer& tokenizer) {
  const SpecialIds& ids = tokenizer.special_ids();
  boost::json::object names;
  const auto add = [&](const char* name, const std::optional<uint32_t>& id) {
    if (id) names[name] = tokenizer.id_to_token(*id);
  };
  add("bos_token", ids.bos);
  add("eos_token", ids.eos);
  add("pad_token", ids.pad);
  add("unk_token", ids.unk);
  return names;
}

}  // namespace

Result<std::vector<uint32_t>> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                          const boost::json::array& messages) {
  ChatInput input;
  input.messages = messages;
  input.special_tokens = special_token_names(tokenizer);
  input.now = local_time();
  PLOW_TRY(const auto segments, chat_template.render_segments(input));
  return encode_segments(tokenizer, segments);
}

}  // namespace plow
