// Of warps with a tape that multiply as a group where there are many rows.
#include "isa/emulated/compile_bodies.h"

template void plow::emulated::Bodies::run<plow::emulated::EmulatedGroupTeam>(const BodyContext&, const Packet&, uint32_t);
