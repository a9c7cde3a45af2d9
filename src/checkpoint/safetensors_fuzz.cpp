// Any bytes either are refused or give tensors that can be read.
#include "checkpoint/safetensors.h"
#include "checkpoint/testing/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plow;
  const auto tensors = read_safetensors(std::as_bytes(std::span(data, size)), "fuzz", 0);
  if (tensors.ok()) testing_files::read_tensors(*tensors);
  return 0;
}
