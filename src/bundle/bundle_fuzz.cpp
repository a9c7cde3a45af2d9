// Bytes that claim to be model.pkt. The digest would reject all that the fuzzer invents, so it is made right
// first; without that step the first byte of the input asks for the bytes as they are.
#include "bundle/bundle.h"
#include "bundle/disassemble.h"

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool seal = data[0] != 0;
  const auto* first = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<std::byte> bytes(first, first + size - 1);
  if (seal && bytes.size() >= sizeof(plow::BundleHeader)) plow::seal_bundle(bytes);
  const auto bundle = plow::BundleFile::from_bytes(std::move(bytes));
  if (!bundle.ok()) return 0;
  for (const plow::ProgramView& program : bundle->programs()) (void)plow::disassemble(program);
  for (const plow::SourceTensor& source : bundle->sources()) (void)bundle->source_name(source);
  (void)plow::plan_memory(*bundle, bundle->header().max_slots, bundle->header().max_context);
  (void)plow::serialise_bundle(plow::tables_of(*bundle));
  return 0;
}
