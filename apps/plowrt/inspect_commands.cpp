#include "plowrt/inspect_commands.h"

#include "base/text_table.h"
#include "bundle/disassemble.h"
#include "console/bundle_dir.h"
#include "console/host.h"

#include <fmt/format.h>

namespace plow {

Status plan_command(const std::filesystem::path& path, std::optional<uint32_t> slots,
                    std::optional<uint32_t> context) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  const BundleHeader& header = bundle.file.header();
  const uint32_t n_slots = slots.value_or(header.max_slots);
  const uint32_t n_context = context.value_or(header.max_context);
  if (n_slots > header.max_slots) {
    return usage_error(
        fmt::format("the bundle was compiled for {} slots, not {}. Compile it again with --slots {}.",
                    header.max_slots, n_slots, n_slots));
  }
  if (n_context > header.max_context) {
    return usage_error(fmt::format(
        "the bundle was compiled for a context of {}, not {}. Compile it again with --max-ctx {}.",
        header.max_context, n_context, n_context));
  }
  const MemoryPlan plan = plan_memory(bundle.file, n_slots, n_context);
  const uint64_t available = read_host_facts().memory_available;
  fmt::print("{}: {} sequence(s) of {} tokens\n\n{}\n", bundle.names.served_name, n_slots, n_context,
             memory_table(plan));
  fmt::print("{}: {} of memory are free here\n", plan.total() <= available ? "fits" : "DOES NOT FIT",
             format_bytes(static_cast<double>(available)));
  return {};
}

Status disasm_command(const std::filesystem::path& path, std::optional<uint32_t> program,
                      std::optional<uint32_t> worker) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  const auto programs = bundle.file.programs();
  if (program && *program >= programs.size()) {
    return usage_error(fmt::format("there is no program {}: the bundle has programs 0 to {}.", *program,
                                   programs.size() - 1));
  }
  if (worker && *worker >= bundle.file.header().n_workers) {
    return usage_error(fmt::format("there is no worker {}: the bundle has workers 0 to {}.", *worker,
                                   bundle.file.header().n_workers - 1));
  }
  for (uint32_t p = 0; p < programs.size(); ++p) {
    if (program && p != *program) continue;
    fmt::print("# program {}: up to {} rows\n", p, programs[p].entry->max_rows);
    if (!worker) {
      fmt::print("{}", disassemble(programs[p]));
      continue;
    }
    const WorkerEntry& list = programs[p].workers[*worker];
    for (uint32_t i = 0; i < list.n_packets; ++i)
      fmt::print("{}\n", format_packet(programs[p], list.first_packet + i));
  }
  return {};
}

}  // namespace plow
