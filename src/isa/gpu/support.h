// What the interpreter of GPUs can run, and the scratch that it needs: asked when a bundle is made and
// when it is loaded.
#pragma once

#include "abi/packet.h"
#include "abi/tensor.h"

#include <cstdint>
#include <string>

namespace plow::gpu {

// Whether it has a body of the operator. What it has none of is not made for a GPU (compile/), and a bundle
// that has it is refused.
bool has_body(Op op);

// Why it cannot run the packet: no body of that number or variant, an operand of a memory, dtype or layout
// that the body does not read, a head that is too wide. Empty when it can. REQUIRES a packet that BundleFile
// has checked.
std::string unsupported_reason(const Packet& packet, const TensorEntry* tensors);

// Bytes of scratch that a worker needs for the packet.
uint64_t body_scratch_bytes(const Packet& packet, const TensorEntry* tensors);

}  // namespace plow::gpu
