#include "serve/served_model.h"

#include "text/encode_segments.h"

#include <boost/json.hpp>

namespace plow {

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

Result<Conversation> encode_conversation(const ServedModel& model, ConversationInput conversation) {
  if (!model.chat_template) {
    return input_error(model.name +
                       " has no chat template: it continues text, it does not chat. Use /v1/completions.");
  }
  ChatInput input;
  input.messages = std::move(conversation.messages);
  input.tools = std::move(conversation.tools);
  input.variables = std::move(conversation.variables);
  input.add_generation_prompt = conversation.add_generation_prompt;
  input.now = model.clock();
  input.special_tokens = special_token_names(model.tokenizer);
  PLOW_TRY(const auto segments, model.chat_template->render_segments(input));
  Conversation out;
  if (model.thinks && !segments.empty() && segments.back().trusted) {
    std::string_view end = segments.back().text;
    end = end.substr(0, end.find_last_not_of(" \n") + 1);
    out.in_thought = end.ends_with("<think>");
  }
  PLOW_TRY(out.ids, encode_segments(model.tokenizer, segments));
  return out;
}

}  // namespace plow
