// Of waves without a unit for matrices.
#include "isa/emulated/compile_bodies.h"

template void plow::emulated::Bodies::run<plow::emulated::EmulatedTeam<64>>(const BodyContext&, const Packet&, uint32_t);
