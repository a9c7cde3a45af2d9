// Any bytes either are refused or give a tree whose text reads back to the same tree.
#include "checkpoint/json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plow;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = parse_json(text, "fuzz");
  if (!tree.ok()) return 0;
  (void)tree->brief();
  const std::string written = to_json(*tree);
  // An object that is read as a number ({"__float__":...}) loses a level, so the text never nests deeper.
  const auto again = parse_json(written, "again", {.max_depth = 65});
  PLOW_CHECK(again.ok() && *again == *tree, "{} does not read back", written);
  return 0;
}
