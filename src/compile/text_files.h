// The part of a bundle that is about text: tokenizer.bin, the tokenizer's original files, chat_template.jinja and generation.json.
#pragma once

#include "base/staged_directory.h"
#include "checkpoint/checkpoint.h"

namespace plow {

// Errors (kInput): no tokenizer; a tokenizer, chat template or generation configuration that is not understood.
Status write_text_files(const Checkpoint& checkpoint, const StagedDirectory& directory);

}  // namespace plow
