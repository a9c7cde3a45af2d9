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

Result<std::vector<uint32_t>> encode_conversation(const ServedModel& model, boost::json::array messages,
                                                  boost::json::object variables, bool add_generation_prompt) {
  if (!model.chat_template) {
    return input_error(model.name +
                       " has no chat template: it continues text, it does not chat. Use /v1/completions.");
  }
  ChatInput input;
  input.messages = std::move(messages);
  input.variables = std::move(variables);
  input.add_generation_prompt = add_generation_prompt;
  input.now = model.clock();
  input.special_tokens = special_token_names(model.tokenizer);
  PLOW_TRY(const auto segments, model.chat_template->render_segments(input));
  return encode_segments(model.tokenizer, segments);
}

}  // namespace plow
