#include "serve/request_fields.h"

#include "abi/step.h"

namespace plow {
namespace {

using enum FieldType;
using enum Support;

// clang-format off

// Ranges: OpenAI's API reference where it names one, else what the sampler takes (runtime/engine.h,
// check_sampling). A seed has 64 bits; -1 stands for none, as in llama.cpp and vLLM.
const std::vector<Field> kAnswerFields = {
    {"model", kString, kSupported, "The model's name, as /v1/models lists it"},
    {"n", kInteger, kSupported, "How many answers; each draws with its own seed, derived from seed", 1, kMostChoices},
    {"temperature", kNumber, kSupported, "0: always the likeliest token", 0, 100},
    {"top_p", kNumber, kSupported, "Draw from the likeliest tokens that together have this probability", 1e-6, 1},
    {"top_k", kInteger, kSupported, "Draw from this many likeliest tokens; 0 or -1: from all", -1, 1e9},
    {"min_p", kNumber, kSupported, "Leave out tokens less likely than this times the likeliest", 0, 1},
    {"presence_penalty", kNumber, kSupported, "Subtracted from the logit of tokens that the answer has", -2, 2},
    {"frequency_penalty", kNumber, kSupported, "The same, for each time", -2, 2},
    {"repetition_penalty", kNumber, kSupported, "Above 1: tokens that were there already become less likely", 0.01, 100},
    {"logit_bias", kObject, kSupported, "By token id: from -100 to 100, added to its logit"},
    {"seed", kInteger, kSupported, "The same seed gives the same answer; -1: another for each request", -9223372036854775808.0, 18446744073709551615.0},
    {"stop", kStrings, kSupported, "Strings that end the answer; they are not part of it"},
    {"stop_token_ids", kIds, kSupported, "Tokens that end the answer; they are not part of it"},
    {"ignore_eos", kBoolean, kSupported, "Go on after the tokens that end the model's answers"},
    {"skip_special_tokens", kBoolean, kSupported, "Leave control tokens out of the text (true when absent)"},
    {"return_token_ids", kBoolean, kSupported, "Give the answer's token ids beside its text"},
    {"priority", kInteger, kSupported, "The lower goes first, as in vLLM", -2147483647.0, 2147483647.0},
    {"cache_salt", kString, kSupported, "Only requests with the same salt share the cache of what they begin with"},
    {"stream", kBoolean, kSupported, "Send the answer as server-sent events while it is made"},
    {"stream_options", kObject, kSupported, "include_usage: a last chunk with the counts of tokens"},
    {"response_format", kObject, kSupported, "{\"type\": \"text\"}, \"json_object\", or \"json_schema\" with json_schema: {name, schema, strict}"},
    {"structured_outputs", kObject, kSupported, "One of json (a schema), json_object, regex, choice, grammar (GBNF), as in vLLM"},
    {"guided_json", kAny, kSupported, "structured_outputs.json under an older name"},
    {"guided_regex", kString, kSupported, "structured_outputs.regex under an older name"},
    {"guided_choice", kArray, kSupported, "structured_outputs.choice under an older name"},
    {"guided_grammar", kString, kSupported, "structured_outputs.grammar under an older name"},
    {"json_schema", kObject, kSupported, "structured_outputs.json under llama.cpp's name"},
    {"grammar", kString, kSupported, "structured_outputs.grammar under llama.cpp's name"},
    {"regex", kString, kSupported, "structured_outputs.regex under SGLang's name"},

    {"user", kAny, kIgnored, "who asks"},
    {"metadata", kAny, kIgnored, "labels of the caller"},
    {"store", kAny, kIgnored, "nothing is stored"},
    {"service_tier", kAny, kIgnored, "there is one tier"},
    {"safety_identifier", kAny, kIgnored, "who asks"},
    {"prompt_cache_key", kAny, kIgnored, "a hint for caches"},
    {"prompt_cache_retention", kAny, kIgnored, "a hint for caches"},
    {"cache_prompt", kAny, kIgnored, "a hint for caches"},
    {"request_id", kAny, kIgnored, "send the header X-Request-Id"},
    {"spaces_between_special_tokens", kAny, kIgnored, "text is decoded as the tokenizer says"},

    {"min_tokens", kAny, kRefused, "a least length"},
    {"allowed_token_ids", kAny, kRefused, "a restricted vocabulary"},
    {"bad_words", kAny, kRefused, "forbidden words"},
    {"use_beam_search", kAny, kRefused, "beam search"},
    {"include_stop_str_in_output", kAny, kRefused, "stop strings as part of the answer"},
    {"truncate_prompt_tokens", kAny, kRefused, "a prompt that is cut"},
    {"prompt_logprobs", kAny, kRefused, "logprobs of the prompt"},
    {"typical_p", kAny, kRefused, "typical sampling", 0, 0, "1"},
    {"mirostat", kAny, kRefused, "Mirostat sampling"},
    {"xtc_probability", kAny, kRefused, "XTC sampling"},
    {"dry_multiplier", kAny, kRefused, "DRY sampling"},
    {"dynatemp_range", kAny, kRefused, "a changing temperature"},
    {"logits_processors", kAny, kRefused, "code of the caller"},
};

const std::vector<Field> kChatOnly = {
    {"messages", kArray, kSupported, "The conversation: objects with role and content", 0, 0, nullptr, true},
    {"max_tokens", kInteger, kSupported, "Most tokens of an answer (the rest of the context when absent)", 1, 4294967295.0},
    {"max_completion_tokens", kInteger, kSupported, "The same under its newer name, which wins", 1, 4294967295.0},
    {"logprobs", kBoolean, kSupported, "Give the log-probability of every token of the answer"},
    {"top_logprobs", kInteger, kSupported, "And of this many likeliest tokens in each place; needs logprobs", 0, kMaxTop},
    {"chat_template_kwargs", kObject, kSupported, "Variables for the chat template, such as enable_thinking"},
    {"reasoning_effort", kString, kSupported, "A variable for the chat template"},
    {"add_generation_prompt", kBoolean, kSupported, "Let the template ask for an answer (true when absent)"},
    {"tools", kArray, kSupported, "Functions that the answer may call: {type: \"function\", function: {name, description, parameters, strict}}"},
    {"tool_choice", kAny, kSupported, "\"auto\", \"none\", \"required\", or {type: \"function\", function: {name}}"},
    {"parallel_tool_calls", kBoolean, kSupported, "Several calls in one answer (true when absent)"},

    {"functions", kAny, kRefused, "tool calls"},
    {"function_call", kAny, kRefused, "tool calls", 0, 0, R"("none")"},
    {"chat_template", kAny, kRefused, "a template of the caller"},
    {"continue_final_message", kAny, kRefused, "an answer that goes on with the last message"},
    {"documents", kAny, kRefused, "documents"},
    {"modalities", kAny, kRefused, "something else than text", 0, 0, R"(["text"])"},
    {"audio", kAny, kRefused, "audio"},
    {"prediction", kAny, kIgnored, "a hint for speed"},
    {"web_search_options", kAny, kRefused, "web search"},
    {"verbosity", kAny, kRefused, "a length in words", 0, 0, R"("medium")"},
    {"echo", kAny, kRefused, "a repeated prompt"},
};

const std::vector<Field> kCompletionOnly = {
    {"prompt", kPrompt, kSupported, "Text or token ids to go on from, one or several", 0, 0, nullptr, true},
    {"max_tokens", kInteger, kSupported, "Most tokens of an answer (16 when absent, as in OpenAI's API); 0: none, with echo", 0, 4294967295.0},
    {"max_completion_tokens", kInteger, kSupported, "The same under its newer name, which wins", 0, 4294967295.0},
    {"logprobs", kInteger, kSupported, "Give the log-probability of every token of the answer, and of this many likeliest ones in its place", 0, kMaxTop},
    {"echo", kBoolean, kSupported, "Put the prompt in front of the answer; its tokens then have log-probabilities, too"},
    {"add_special_tokens", kBoolean, kSupported, "Add what the tokenizer puts around a text (true when absent)"},

    {"best_of", kAny, kRefused, "a choice among answers", 0, 0, "1"},
    {"suffix", kAny, kRefused, "text after the answer"},
};

const FieldTable kStreamOptions = {"StreamOptions", {
    {"include_usage", kBoolean, kSupported, "A last chunk with the counts of tokens"},
    {"include_obfuscation", kAny, kIgnored, "padding against traffic analysis"},
    {"continuous_usage_stats", kAny, kRefused, "counts in every chunk"},
}};

const FieldTable kTokenize = {"TokenizeRequest", {
    {"model", kString, kSupported, "The model's name, as /v1/models lists it"},
    {"prompt", kString, kSupported, "Text (vLLM's name)"},
    {"content", kString, kSupported, "Text (llama.cpp's name)"},
    {"messages", kArray, kSupported, "A conversation, put through the chat template"},
    {"add_special_tokens", kBoolean, kSupported, "Add what the tokenizer puts around a text (true for prompt, false for the rest, when absent)"},
    {"add_special", kBoolean, kSupported, "The same under llama.cpp's name"},
    {"parse_special", kBoolean, kSupported, "Text that spells a control token becomes it (false when absent)"},
    {"with_pieces", kBoolean, kSupported, "Objects of id and piece instead of ids"},
    {"return_token_strs", kBoolean, kSupported, "The tokens' spellings beside the ids"},
    {"add_generation_prompt", kBoolean, kSupported, "Let the template ask for an answer (true when absent)"},
    {"chat_template_kwargs", kObject, kSupported, "Variables for the chat template"},
    {"tools", kArray, kSupported, "Functions that the conversation shows"},
    {"chat_template", kAny, kRefused, "a template of the caller"},
    {"continue_final_message", kAny, kRefused, "an answer that goes on with the last message"},
}, {"prompt", "content", "messages"}};

const FieldTable kDetokenize = {"DetokenizeRequest", {
    {"model", kString, kSupported, "The model's name, as /v1/models lists it"},
    {"tokens", kIds, kSupported, "Token ids", 0, 0, nullptr, true},
}};

const FieldTable kResponses = {"ResponsesRequest", {
    {"model", kString, kSupported, "The model's name, as /v1/models lists it"},
    {"input", kTextOrArray, kSupported, "A text, or items: messages, function_call, function_call_output", 0, 0, nullptr, true},
    {"instructions", kString, kSupported, "A system message in front, of this answer only"},
    {"previous_response_id", kString, kSupported, "A stored response that the conversation goes on from"},
    {"store", kBoolean, kSupported, "Remember the answer, in memory and for a while (true when absent)"},
    {"max_output_tokens", kInteger, kSupported, "Most tokens of the answer (the rest of the context when absent)", 1, 4294967295.0},
    {"temperature", kNumber, kSupported, "0: always the likeliest token", 0, 100},
    {"top_p", kNumber, kSupported, "Draw from the likeliest tokens that together have this probability", 1e-6, 1},
    {"top_logprobs", kInteger, kSupported, "Log-probabilities of the answer's tokens and of this many in their places", 0, kMaxTop},
    {"include", kArray, kSupported, "message.output_text.logprobs: log-probabilities of the answer's tokens"},
    {"stream", kBoolean, kSupported, "Send the answer as server-sent events while it is made"},
    {"text", kObject, kSupported, "format: {\"type\": \"text\"}, \"json_object\", or \"json_schema\" with name, schema, strict"},
    {"reasoning", kObject, kSupported, "effort: a variable for the chat template"},
    {"tools", kArray, kSupported, "Functions that the answer may call: {type: \"function\", name, description, parameters, strict}"},
    {"tool_choice", kAny, kSupported, "\"auto\", \"none\", \"required\", or {type: \"function\", name}"},
    {"parallel_tool_calls", kBoolean, kSupported, "Several calls in one answer (true when absent)"},

    {"user", kAny, kIgnored, "who asks"},
    {"metadata", kAny, kIgnored, "labels of the caller"},
    {"service_tier", kAny, kIgnored, "there is one tier"},
    {"safety_identifier", kAny, kIgnored, "who asks"},
    {"prompt_cache_key", kAny, kIgnored, "a hint for caches"},
    {"prompt_cache_retention", kAny, kIgnored, "a hint for caches"},
    {"stream_options", kAny, kIgnored, "padding against traffic analysis"},

    {"background", kAny, kRefused, "an answer that is fetched later"},
    {"conversation", kAny, kRefused, "a conversation that the server keeps"},
    {"max_tool_calls", kAny, kRefused, "tools that the server runs"},
    {"prompt", kAny, kRefused, "a stored prompt"},
    {"truncation", kAny, kRefused, "a prompt that is cut", 0, 0, R"("disabled")"},
}};

const std::vector<Field> kConversation = {
    {"model", kString, kSupported, "The model's name, as /v1/models lists it"},
    {"messages", kArray, kSupported, "The conversation: objects with role (user, assistant) and content, a text or blocks", 0, 0, nullptr, true},
    {"system", kTextOrArray, kSupported, "What stands before the conversation: a text or text blocks"},
    {"tools", kArray, kSupported, "Functions that the answer may call: {name, description, input_schema}"},
    {"tool_choice", kObject, kSupported, "type: auto, any, none, or tool with name; disable_parallel_tool_use"},
    {"thinking", kObject, kSupported, "type: enabled, adaptive, disabled; the template's enable_thinking. A budget is not kept"},
    {"cache_control", kAny, kIgnored, "a hint for caches"},
    {"mcp_servers", kAny, kRefused, "tools that the server runs"},
    {"context_management", kAny, kRefused, "a conversation that is cut"},
    {"output_config", kAny, kRefused, "a schema of the answer or an effort"},
    {"output_format", kAny, kRefused, "a schema of the answer"},
};

const std::vector<Field> kMessagesOnly = {
    {"max_tokens", kInteger, kSupported, "Most tokens of the answer", 1, 4294967295.0, nullptr, true},
    {"stop_sequences", kStrings, kSupported, "Strings that end the answer; they are not part of it"},
    {"temperature", kNumber, kSupported, "0: always the likeliest token", 0, 100},
    {"top_p", kNumber, kSupported, "Draw from the likeliest tokens that together have this probability", 1e-6, 1},
    {"top_k", kInteger, kSupported, "Draw from this many likeliest tokens", -1, 1e9},
    {"stream", kBoolean, kSupported, "Send the answer as server-sent events while it is made"},
    {"metadata", kAny, kIgnored, "labels of the caller"},
    {"service_tier", kAny, kIgnored, "there is one tier"},
    {"inference_geo", kAny, kIgnored, "there is one place"},
    {"container", kAny, kRefused, "tools that the server runs"},
};

// clang-format on

FieldTable with_answer_fields(const char* name, const std::vector<Field>& own) {
  FieldTable table{name, own};
  table.fields.insert(table.fields.end(), kAnswerFields.begin(), kAnswerFields.end());
  return table;
}

}  // namespace

const FieldTable& chat_fields() {
  static const FieldTable table = with_answer_fields("ChatCompletionRequest", kChatOnly);
  return table;
}

const FieldTable& completion_fields() {
  static const FieldTable table = with_answer_fields("CompletionRequest", kCompletionOnly);
  return table;
}

const FieldTable& responses_fields() { return kResponses; }

const FieldTable& messages_fields() {
  static const FieldTable table = [] {
    FieldTable all{"MessagesRequest", kConversation};
    all.fields.insert(all.fields.end(), kMessagesOnly.begin(), kMessagesOnly.end());
    return all;
  }();
  return table;
}

const FieldTable& count_tokens_fields() {
  static const FieldTable table{"CountTokensRequest", kConversation};
  return table;
}

const FieldTable& stream_option_fields() { return kStreamOptions; }
const FieldTable& tokenize_fields() { return kTokenize; }
const FieldTable& detokenize_fields() { return kDetokenize; }

}  // namespace plow
