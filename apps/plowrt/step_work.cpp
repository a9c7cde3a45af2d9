#include "plowrt/step_work.h"

#include <algorithm>
#include <vector>

namespace plow {

StepWork step_work(const ProgramView& program) {
  StepWork work;
  std::vector<bool> counted(program.tensors.size(), false);
  for (const Packet& packet : program.packets) {
    if (static_cast<Op>(packet.body) == Op::kEmbed) continue;
    for (uint32_t i = 0; i < kPacketOperands; ++i) {
      const uint16_t operand = packet.operand[i];
      if (operand == kNoTensor || counted[operand]) continue;
      const TensorEntry& tensor = program.tensors[operand];
      if (tensor.space != Space::kTape) continue;
      counted[operand] = true;
      work.weight_bytes += static_cast<double>(tensor.bytes);
      if ((matrix_inputs(static_cast<Op>(packet.body)) >> i & 1u) == 0) continue;
      const double flops = 2.0 * tensor.rows * tensor.cols;
      (static_cast<Rows>(packet.row_kind) == Rows::kSamples ? work.flops_per_sample : work.flops_per_row) +=
          flops;
    }
  }
  return work;
}

double kv_bytes_read(const BundleFile& bundle, uint32_t position) {
  double bytes = 0;
  for (const KvGroup& group : bundle.kv_groups()) {
    const uint32_t positions = group.window == 0 ? position + 1 : std::min(position + 1, group.window);
    bytes += static_cast<double>(group.block_bytes) / group.block_tokens * positions;
  }
  return bytes;
}

}  // namespace plow
