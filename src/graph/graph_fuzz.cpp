// parse_graph on bytes of unknown origin; what it accepts verifies, and prints and parses back to the same
// text.
#include "graph/graph.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const plow::Result<plow::OpGraph> graph = plow::parse_graph({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) return 0;
  const std::string text = plow::print_graph(*graph);
  const plow::Result<plow::OpGraph> again = plow::parse_graph(text);
  if (!again.ok() || plow::print_graph(*again) != text) abort();
  return 0;
}
