// build_model on a configuration of unknown origin, for tensors that fit one: any outcome but a crash, and
// what is built verifies.
#include "models/models.h"
#include "models/testing/fake_checkpoint.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string config(reinterpret_cast<const char*>(data), size);
  const plow::Result<plow::Checkpoint> checkpoint = plow::fake_checkpoint(config, plow::fake_tensors());
  if (!checkpoint.ok()) return 0;
  const plow::Result<plow::OpGraph> graph = plow::build_model(*checkpoint, {});
  if (graph.ok() && !plow::verify_graph(*graph).ok()) abort();
  return 0;
}
