// Of warps with a unit for matrices and a tape.
#include "isa/emulated/compile_bodies.h"

template void plow::emulated::Bodies::run<plow::emulated::EmulatedTapeTeam>(const BodyContext&, const Packet&, uint32_t);
