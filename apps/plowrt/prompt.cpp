#include "plowrt/prompt.h"

#include "serve/served_model.h"
#include "text/encode_segments.h"

#include <time.h>

namespace plow {

LocalTime local_time() {
  const std::time_t now = ::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return {
      parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, 0};
}

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
