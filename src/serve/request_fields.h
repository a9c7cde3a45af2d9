// The fields of every request that plow's server knows, by endpoint.
#pragma once

#include "serve/fields.h"

namespace plow {

// Bounds of one request, so that none takes the server for itself. OpenAI allows 128 choices.
constexpr uint32_t kMostChoices = 128;
constexpr uint32_t kMostStops = 32;        // stop strings
constexpr uint32_t kMostStopBytes = 512;   // of one of them
constexpr uint32_t kMostPrompts = 1024;    // of one /v1/completions
constexpr uint32_t kMostMessages = 16384;  // of one conversation

const FieldTable& chat_fields();
const FieldTable& completion_fields();
const FieldTable& responses_fields();
const FieldTable& messages_fields();
const FieldTable& count_tokens_fields();
const FieldTable& stream_option_fields();
const FieldTable& tokenize_fields();
const FieldTable& detokenize_fields();

}  // namespace plow
