#include "interp/reference/access_check.h"

#include "bundle/disassemble.h"
#include "interp/reference/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace plow::reference {
namespace {

constexpr uint64_t kArenaElementBytes = 4;  // every activation is f32 (check_operator of bundle/)

uint32_t row_tiles_of_packet(const ProgramView& program, const StepPlan& plan, const Packet& packet) {
  return row_tiles(*program.entry, plan.shape, static_cast<Rows>(packet.row_kind));
}

}  // namespace

AccessCheck::AccessCheck(const ProgramView& program, const std::vector<PacketPlan>& packets,
                         const StepPlan& plan, const StepColumns& step,
                         const std::vector<std::vector<uint32_t>>& history, Device& device,
                         std::vector<Finding>& findings)
    : program_(program),
      packets_(packets),
      plan_(plan),
      step_(step),
      history_(history),
      device_(device),
      findings_(findings),
      written_by_(program.tensors.size()) {
  for (uint32_t p = 0; p < packets.size(); ++p) {
    if (packets[p].runs.empty()) continue;
    const uint16_t output = program.packets[p].operand[packets[p].n_inputs];
    written_by_[output].assign(
        size_t{row_tiles_of_packet(program, plan, program.packets[p])} * program.tensors[output].cols, 0);
  }
}

void AccessCheck::check(const Instance& instance, const Accessor& by) {
  const Who who{instance, by};
  const PacketPlan& plan = packets_[instance.packet];
  for (const bool writes : {false, true}) {
    for (const TileRun& run : plan.runs) {
      for (const Access& access : run.accesses) {
        if (access.writes == writes) check_access(who, access);
      }
    }
  }
  for (const TileRun& run : plan.runs) mark_written(who, tensor_of(who, plan.n_inputs), run);
}

void AccessCheck::check_access(const Who& who, const Access& access) {
  const uint16_t tensor = tensor_of(who, access.operand);
  switch (program_.tensors[tensor].space) {
    case Space::kTape:
      return;  // never written; that it is long enough was checked when the bundle was read
    case Space::kArena:
      return check_arena(who, tensor, access);
    case Space::kKv:
      return access.writes ? check_kv_write(who, tensor, access) : check_kv_read(who, tensor, access);
    case Space::kStep:
      return check_step(who, tensor, access);
  }
}

std::pair<uint32_t, uint32_t> AccessCheck::rows_of(const Who& who, const TensorEntry& tensor,
                                                   const Access& access) const {
  if (access.rows == RowAccess::kFixed) return {access.row_begin, access.row_end};
  const uint32_t live = rows_of_kind(plan_.shape, tensor.row_kind);
  if (access.rows == RowAccess::kAll) return {0, live};
  const auto kind = static_cast<Rows>(program_.packets[who.instance.packet].row_kind);
  const uint32_t rows = row_tile_rows(*program_.entry, kind);
  const uint32_t begin = who.instance.row_tile * rows;
  return {begin, std::min(begin + rows, rows_of_kind(plan_.shape, kind))};
}

void AccessCheck::check_arena(const Who& who, uint16_t tensor, const Access& access) {
  const TensorEntry& entry = program_.tensors[tensor];
  const auto [first, last] = rows_of(who, entry, access);
  const uint64_t columns = access.col_end - access.col_begin;
  for (uint32_t row = first; row < last; ++row) {
    const uint64_t start =
        (entry.offset + uint64_t{row} * entry.row_stride) / kArenaElementBytes + access.col_begin;
    const auto conflict = access.writes ? device_.arena.write(start, columns, {tensor, 0, 0}, who.by)
                                        : device_.arena.read(start, columns, {tensor, 0, 0}, true, who.by);
    if (conflict) {
      const auto column = static_cast<uint32_t>(access.col_begin + (conflict->element - start));
      report(who, access.writes, *conflict, {tensor, row, column, 0});
    }
  }
}

void AccessCheck::check_kv_write(const Who& who, uint16_t tensor, const Access& access) {
  const auto [first, last] = rows_of(who, program_.tensors[tensor], access);
  for (uint32_t row = first; row < last; ++row)
    check_cells(who, tensor, access, step_.row_slots[row], step_.positions[row], true);
}

// Attention: the rows of the tile that belong to one sequence read a run of its positions together.
void AccessCheck::check_kv_read(const Who& who, uint16_t tensor, const Access& access) {
  constexpr uint32_t kWindow = 1;  // attribute of attention
  const Packet& packet = program_.packets[who.instance.packet];
  const uint32_t window = packet.immediate[kWindow];
  const auto kind = static_cast<Rows>(packet.row_kind);
  const auto step_row = [&](uint32_t row) { return kind == Rows::kSamples ? step_.sample_rows[row] : row; };
  const uint32_t rows = row_tile_rows(*program_.entry, kind);
  const uint32_t end = std::min((who.instance.row_tile + 1) * rows, rows_of_kind(plan_.shape, kind));
  for (uint32_t row = who.instance.row_tile * rows; row < end;) {
    const uint32_t first = step_row(row), slot = step_.row_slots[first];
    uint32_t last = first;
    while (++row < end && step_row(row) == last + 1 && step_.row_slots[last + 1] == slot) ++last;
    const uint32_t from = step_.positions[first];
    const uint32_t lowest = window == 0 || from + 1 < window ? 0 : from + 1 - window;
    for (uint32_t position = lowest; position <= step_.positions[last]; ++position) {
      check_cells(who, tensor, access, slot, position, position >= step_.span_first[first]);
    }
  }
}

void AccessCheck::check_cells(const Who& who, uint16_t tensor, const Access& access, uint32_t slot,
                              uint32_t position, bool fresh) {
  constexpr uint32_t kHeadDim = 0;  // attribute of all that append and attend
  const TensorEntry& entry = program_.tensors[tensor];
  const uint32_t head_dim = program_.packets[who.instance.packet].immediate[kHeadDim];
  const uint32_t group = entry.kv_group;
  const uint32_t block = step_.block_tables[group][size_t{slot} * step_.table_width +
                                                   position / device_.memory.block_tokens(group)];
  const Content content{entry.node, position, history_[slot][position]};
  Shadow& shadow = device_.kv[group];
  for (uint32_t column = access.col_begin; column < access.col_end; ++column) {
    const KvPlace place =
        device_.memory.kv_place(entry, block, position, column / head_dim, head_dim, column % head_dim);
    for (const uint64_t element : {place.key, place.value}) {
      const auto conflict = access.writes ? shadow.write(element, 1, content, who.by)
                                          : shadow.read(element, 1, content, fresh, who.by);
      if (conflict) report(who, access.writes, *conflict, {tensor, position, column, slot});
    }
  }
}

// Of the step's columns only the sampled tokens are written while it runs.
void AccessCheck::check_step(const Who& who, uint16_t tensor, const Access& access) {
  if (!access.writes) return;
  const auto [first, last] = rows_of(who, program_.tensors[tensor], access);
  for (uint32_t row = first; row < last; ++row) {
    const auto conflict = device_.sampled.write(row, 1, {}, who.by);
    if (conflict) report(who, true, *conflict, {tensor, row, 0, 0});
  }
}

void AccessCheck::check_sampled(const Instance& instance, const Accessor& by) {
  for (uint32_t s = 0; s < plan_.shape.n_samples; ++s) {
    const auto conflict = device_.sampled.read(s, 1, {}, true, by);
    if (!conflict) continue;
    const std::string why = conflict->kind == FindingKind::kNeverWritten
                                ? "nothing has written it in this step"
                                : "no wait puts " + describe_other(*conflict) + " before it";
    findings_.push_back({conflict->kind, instance.packet, by.worker,
                         fmt::format("{} hands out the token of sample {}, and {}",
                                     describe_instance(program_, packets_, instance), s, why)});
    return;
  }
}

void AccessCheck::mark_written(const Who& who, uint16_t tensor, const TileRun& run) {
  auto& written = written_by_[tensor];
  const size_t row = size_t{who.instance.row_tile} * program_.tensors[tensor].cols;
  for (uint32_t column = run.col_begin; column < run.col_end; ++column) {
    uint32_t& by = written[row + column];
    if (by != 0 && (findings_.empty() || findings_.back().kind != FindingKind::kWrittenTwice)) {
      findings_.push_back(
          {FindingKind::kWrittenTwice, who.instance.packet, who.by.worker,
           fmt::format("{} writes column {} of {}, which p{} has written in the same row tile",
                       describe_instance(program_, packets_, who.instance), column,
                       format_operand(program_, tensor), by - 1)});
    }
    by = who.instance.packet + 1;
  }
}

void AccessCheck::check_outputs_written() {
  for (uint32_t t = 0; t < written_by_.size(); ++t) {
    const auto& written = written_by_[t];
    const auto missing = std::find(written.begin(), written.end(), 0u);
    if (missing == written.end()) continue;
    const auto index = static_cast<uint32_t>(missing - written.begin());
    findings_.push_back(
        {FindingKind::kNotWritten, Finding::kNoPacket, 0,
         fmt::format("no tile writes column {} of {} in row tile {}", index % program_.tensors[t].cols,
                     format_operand(program_, static_cast<uint16_t>(t)), index / program_.tensors[t].cols)});
  }
}

std::string AccessCheck::describe_place(const Place& place) const {
  if (program_.tensors[place.tensor].space == Space::kKv) {
    return describe_cell(program_, place.tensor, place.slot, place.row, place.column);
  }
  return describe_element(program_, place.tensor, place.row, place.column);
}

std::string AccessCheck::describe_other(const Conflict& conflict) const {
  if (conflict.other_tick == 0) return "a step before";
  return describe_instance(program_, packets_,
                           plan_.instances[conflict.other_worker][conflict.other_tick - 1]);
}

std::string AccessCheck::describe_conflict(const Who& who, bool writes, const Conflict& conflict,
                                           const Place& place) const {
  const std::string me = fmt::format("{} {} {}", describe_instance(program_, packets_, who.instance),
                                     writes ? "writes" : "reads", describe_place(place));
  const std::string other = describe_other(conflict);
  switch (conflict.kind) {
    case FindingKind::kUnorderedRead:
      return fmt::format("{}, which {} writes, and no wait puts the write before the read", me, other);
    case FindingKind::kUnorderedWrite:
      return fmt::format("{} over what {} {}, and no wait puts that first", me, other,
                         conflict.other_writes ? "writes" : "reads");
    case FindingKind::kOwnInput:
      return me + " over its own input";
    case FindingKind::kWrongContent:
      if (program_.tensors[place.tensor].space == Space::kKv) {
        return fmt::format("{}, and what is there was written by {} for another token, position or layer", me,
                           other);
      }
      return fmt::format("{}, and what is there is {}, written by {}", me,
                         format_operand(program_, static_cast<uint16_t>(conflict.found.owner)), other);
    default:
      break;
  }
  const bool kv = program_.tensors[place.tensor].space == Space::kKv;
  const Packet* writer = kv ? nullptr : packet_that_writes(program_, place.tensor, place.row, place.column);
  const std::string whose = writer == nullptr
                                ? ""
                                : fmt::format("; p{} should, and no wait makes the read come after it",
                                              writer - program_.packets.data());
  return me + ", and nothing has written it in this step" + whose;
}

// One finding for a packet's conflicts of one kind in one tensor says it all.
void AccessCheck::report(const Who& who, bool writes, const Conflict& conflict, const Place& place) {
  const bool known = std::any_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
    return finding.kind == conflict.kind && finding.packet == who.instance.packet &&
           finding.tensor == place.tensor;
  });
  if (known) return;
  findings_.push_back({conflict.kind, who.instance.packet, who.by.worker,
                       describe_conflict(who, writes, conflict, place), place.tensor});
}

}  // namespace plow::reference
