// Any bytes either are refused or give a checkpoint that can be read: container first, then what it means.
#include "checkpoint/gguf.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/testing/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plow;
  const auto gguf = read_gguf(std::as_bytes(std::span(data, size)), "fuzz");
  if (!gguf.ok()) return 0;
  const auto checkpoint = gguf_to_checkpoint(*gguf, "fuzz");
  if (!checkpoint.ok()) return 0;
  testing_files::read_tensors(checkpoint->tensors);
  if (checkpoint->gguf_tokenizer) testing_files::read_tokenizer(*checkpoint->gguf_tokenizer);
  return 0;
}
