// Of waves with a unit for matrices.
#include "isa/emulated/compile_bodies.h"

template void plow::emulated::Bodies::run<plow::emulated::EmulatedMatrixTeam>(const BodyContext&, const Packet&, uint32_t);
