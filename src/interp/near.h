// What a team keeps near: copies, in its own memory, of what it needs of every packet and step before it can
// begin. Each of them is a way to memory and back, in turn, when it is read where it lies: the packet, its
// waits, its operands' places, what they point to. Packets are copied while others run: a packet two ahead of
// the one that runs, and what it refers to one ahead.
#pragma once

#include "interp/protocol.h"

namespace plow::dev {

// Copies to the team's memory that a thread begins, and waits for, by groups. Both ends are aligned to their
// size.
template <class B>
concept HasStage = requires(void* to, const void* from) {
  B::template stage<16>(to, from, true);  // or 8 bytes; zeros when false
  B::commit_stage();                      // what was staged since the last is a group
  B::await_stage(true);                   // this thread's groups are there; when true, all but the last
};

// One worker in one step. A team's lies near, too: in its threads' own memory it would be a way to L2 after each wait,
// which empties the cache that lies before that.
struct StepRun {
  const Device* device;
  const ProgramTable* program;
  BodyContext body;
  uint32_t worker;
  uint32_t epoch;
  uint32_t bank;
  WeightStream stream;
};

// Of a packet's; one with more reads them where they lie.
constexpr uint32_t kNearWaits = 16, kNearSignals = 8;

struct NearPacket {
  alignas(16) Packet packet;  // its operands are numbers of Near::operands
  Wait waits[kNearWaits];
  Signal signals[kNearSignals];
};
constexpr uint32_t kNearPackets = 4;  // one behind, in which signals may still be read, to two ahead
struct Near {
  Device device;
  const TensorEntry* tensors;  // of the program, where they lie
  ProgramTable program;        // whose tensors are the operands
  StepDescriptor step;
  alignas(16) TensorEntry operands[kNearPackets * kPacketOperands];
  NearPacket packets[kNearPackets];
  StepRun run;
  TapePlace tape;
};
constexpr uint32_t kNearBytes = (sizeof(Near) + 127) / 128 * 128;

template <class I, class T>
PLOW_DEVICE void copy_words(T* to, const T* from, uint32_t n) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  auto* out = reinterpret_cast<uint32_t*>(to);
  const auto* in = reinterpret_cast<const uint32_t*>(from);
  PLOW_UNROLL_BY(1)
  for (uint32_t i = I::thread(); i < n * (sizeof(T) / sizeof(uint32_t)); i += I::n_threads()) out[i] = in[i];
}

// A team's place in its list, which begins again at its end.
struct NearList {
  Near* near;
  const Packet* packets;  // of the worker
  uint32_t n;
  uint32_t index = 0;  // of the packet that runs
  uint32_t slot = 0;   // where it is
};
PLOW_DEVICE uint32_t list_index(const NearList& list, uint32_t ahead) { return (list.index + ahead) % list.n; }
PLOW_DEVICE uint32_t near_slot(const NearList& list, uint32_t ahead) { return (list.slot + ahead) % kNearPackets; }
PLOW_DEVICE NearPacket& near_packet(const NearList& list, uint32_t ahead) {
  return list.near->packets[near_slot(list, ahead)];
}

template <class I>
PLOW_DEVICE void stage_packet(const NearList& list, uint32_t ahead) {
  const uint32_t t = I::thread();
  if (t < sizeof(Packet) / 16)
    I::template stage<16>(reinterpret_cast<unsigned char*>(&near_packet(list, ahead).packet) + 16 * t,
                          reinterpret_cast<const unsigned char*>(list.packets + list_index(list, ahead)) + 16 * t,
                          true);
}

// What a packet that is there refers to.
template <class I>
PLOW_DEVICE void stage_tables(const NearList& list, uint32_t ahead) {
  NearPacket& near = near_packet(list, ahead);
  TensorEntry* operands = list.near->operands + near_slot(list, ahead) * kPacketOperands;
  const ProgramTable& program = list.near->program;
  const Packet& packet = near.packet;
  constexpr uint32_t kUnits = sizeof(TensorEntry) / 16;
  constexpr uint32_t kOfOperands = kPacketOperands * kUnits, kOfWaits = kOfOperands + kNearWaits;
  PLOW_UNROLL_BY(1)
  for (uint32_t i = I::thread(); i < kOfWaits + kNearSignals; i += I::n_threads()) {
    if (i < kOfOperands) {
      if (packet.operand[i / kUnits] != kNoTensor)
        I::template stage<16>(
            reinterpret_cast<unsigned char*>(operands) + 16 * i,
            reinterpret_cast<const unsigned char*>(list.near->tensors + packet.operand[i / kUnits]) + 16 * (i % kUnits),
            true);
    } else if (i < kOfWaits) {
      const uint32_t w = i - kOfOperands;
      if (w < packet.n_waits) I::template stage<16>(near.waits + w, program.waits + packet.wait_first + w, true);
    } else {
      const uint32_t s = i - kOfWaits;
      if (s < packet.n_signals) I::template stage<8>(near.signals + s, program.signals + packet.signal_first + s, true);
    }
  }
}

// The team settles, and what it staged is there.
template <class I>
PLOW_DEVICE void settle_staged() {
  I::await_stage(false);
  I::settle();
}

// At the beginning of a call: its tables, and the first packets.
template <class I>
PLOW_DEVICE NearList open_list(unsigned char* memory, const Device& device, const ProgramTable& program,
                               const WorkerEntry& lists) {
  Near& near = *reinterpret_cast<Near*>(memory);
  NearList list{&near, program.packets + lists.first_packet, lists.n_packets};
  settle_staged<I>();  // those of a call that was given up
  copy_words<I>(&near.device, &device, 1);
  copy_words<I>(&near.step, device.step, 1);
  copy_words<I>(&near.program, &program, 1);
  stage_packet<I>(list, 0);
  stage_packet<I>(list, 1);
  I::commit_stage();
  settle_staged<I>();
  if (I::thread() == 0) {
    near.tensors = program.tensors;
    near.program.tensors = near.operands;
  }
  I::settle();
  stage_tables<I>(list, 0);
  I::commit_stage();
  settle_staged<I>();
  return list;
}

// Before a packet runs: the next ones are sent for. The team settles before it looks at the operands.
template <class I>
PLOW_DEVICE void send_for_next(const NearList& list) {
  uint16_t* operand = near_packet(list, 0).packet.operand;
  const uint32_t t = I::thread();
  if (t < kPacketOperands && operand[t] != kNoTensor)
    operand[t] = static_cast<uint16_t>(near_slot(list, 0) * kPacketOperands + t);
  stage_tables<I>(list, 1);
  stage_packet<I>(list, 2);
  I::commit_stage();
}

PLOW_DEVICE void next_packet(NearList& list) {
  list.index = list_index(list, 1);
  list.slot = near_slot(list, 1);
}

}  // namespace plow::dev
