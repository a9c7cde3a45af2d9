// Puts what a tile reads and writes, by its footprint, against the shadows of the memories.
#pragma once

#include "interp/reference/machine.h"
#include "interp/reference/memory.h"
#include "interp/reference/shadow.h"
#include "interp/reference/step_plan.h"

#include <cstdint>
#include <vector>

namespace plow::reference {

// Everything that one device has, and what is known of its content.
struct Device {
  Memory memory;
  Shadow arena;            // elements of 4 bytes
  std::vector<Shadow> kv;  // by group: elements of the cache's dtype
  Shadow sampled;          // by sample
};

class AccessCheck {
 public:
  AccessCheck(const ProgramView& program, const std::vector<PacketPlan>& packets, const StepPlan& plan,
              const StepColumns& step, const std::vector<std::vector<uint32_t>>& history, Device& device,
              std::vector<Finding>& findings);

  // All that `instance` reads and writes; reads first.
  void check(const Instance& instance, const Accessor& by);
  // What `advance` reads: the sampled tokens.
  void check_sampled(const Instance& instance, const Accessor& by);

  // Every element of every tensor that a packet writes, in the rows of this step, must have been written
  // once.
  void check_outputs_written();

 private:
  struct Who {
    const Instance& instance;
    const Accessor& by;
  };
  struct Place {  // of an element, for its description
    uint16_t tensor;
    uint32_t row;  // or the position
    uint32_t column;
    uint32_t slot;  // of a cache's element
  };

  void check_access(const Who& who, const Access& access);
  void check_arena(const Who& who, uint16_t tensor, const Access& access);
  void check_kv_read(const Who& who, uint16_t tensor, const Access& access);
  void check_kv_write(const Who& who, uint16_t tensor, const Access& access);
  void check_cells(const Who& who, uint16_t tensor, const Access& access, uint32_t slot, uint32_t position,
                   bool fresh);
  void check_step(const Who& who, uint16_t tensor, const Access& access);
  void mark_written(const Who& who, uint16_t tensor, const TileRun& run);

  void report(const Who& who, bool writes, const Conflict& conflict, const Place& place);
  std::string describe_other(const Conflict& conflict) const;
  std::string describe_conflict(const Who& who, bool writes, const Conflict& conflict,
                                const Place& place) const;
  std::string describe_place(const Place& place) const;
  std::pair<uint32_t, uint32_t> rows_of(const Who& who, const TensorEntry& tensor,
                                        const Access& access) const;
  uint16_t tensor_of(const Who& who, uint32_t operand) const {
    return program_.packets[who.instance.packet].operand[operand];
  }

  const ProgramView& program_;
  const std::vector<PacketPlan>& packets_;
  const StepPlan& plan_;
  const StepColumns& step_;
  const std::vector<std::vector<uint32_t>>& history_;
  Device& device_;
  std::vector<Finding>& findings_;
  std::vector<std::vector<uint32_t>>
      written_by_;  // by tensor: [row tile][column] packet + 1, 0 for none; empty for what no packet writes
};

}  // namespace plow::reference
