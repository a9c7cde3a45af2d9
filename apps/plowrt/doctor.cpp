#include "plowrt/doctor.h"

#include "base/text_table.h"
#include "bundle/receipt.h"
#include "console/bundle_dir.h"
#include "console/host.h"
#include "isa/x86_64/interpreter.h"
#include "plowrt/bandwidth.h"
#include "plowrt/gpu_drivers.h"

#include <fmt/format.h>

namespace plow {

namespace {

void line(const char* what, const std::string& value) { fmt::print("{:<12} {}\n", what, value); }

std::string rate(double bytes_per_second) { return format_bytes(bytes_per_second) + "/s"; }

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none of those that the interpreter looks for" : text;
}

// Which compilations of the x86-64 interpreter run here, and which of them is taken unless --isa says
// otherwise.
std::string interpreter_levels() {
  std::string text;
  for (const IsaLevel level : available_isa_levels())
    text += fmt::format("{}{}", text.empty() ? "" : ", ", isa_level_name(level));
  const auto chosen = choose_isa_level(IsaLevel::kAuto);
  return chosen.ok() ? fmt::format("{} (of {})", isa_level_name(*chosen), text) : chosen.error().message;
}

// Prints every reason why the bundle would not run, and returns the first.
Status check_bundle(const std::filesystem::path& path, const BundleDir& bundle, const HostFacts& host) {
  const BundleHeader& header = bundle.file.header();
  const MemoryPlan plan = plan_memory(bundle.file, header.max_slots, header.max_context);
  line("bundle", fmt::format("{}: {} for {} workers, {} layers, context {}, {} slots",
                             bundle.names.served_name, isa_name(header.isa), header.n_workers,
                             header.n_layers, header.max_context, header.max_slots));
  Status status;
  const auto fail = [&status](Error error) {
    line("", error.message);
    if (status.ok()) status = std::move(error);
  };
  if (Status receipt = check_receipt_of(path); receipt.ok()) {
    line("receipt", "plow_verify has accepted it");
  } else {
    fail(receipt.error());
  }
  const bool on_cpu = std::string_view(isa_vendor(header.isa)) == "cpu";
  if (!on_cpu) line("", "its workers and memory are a GPU's");
  if (on_cpu && header.n_workers > host.cores) {
    fail(
        does_not_fit(fmt::format("it is scheduled for {} workers and this process may use {} cores. Compile "
                                 "it again with --workers {}.",
                                 header.n_workers, host.cores, host.cores)));
  }
  if (on_cpu && plan.total() > host.memory_available) {
    fail(does_not_fit(fmt::format(
        "it needs {} of memory and {} are free. Compile it again with fewer --slots or a smaller --max-ctx.",
        format_bytes(static_cast<double>(plan.total())),
        format_bytes(static_cast<double>(host.memory_available)))));
  }
  if (on_cpu && status.ok())
    line("", fmt::format("it fits: {} of memory", format_bytes(static_cast<double>(plan.total()))));
  return status;
}

}  // namespace

Status doctor_command(const std::filesystem::path& path) {
  const HostFacts host = read_host_facts();
  line("cpu", host.cpu);
  line("features", joined(host.features));
  line("interpreter", interpreter_levels());
  line("cores", fmt::format("{} that this process may use", host.cores));
  line("memory", fmt::format("{}, {} free", format_bytes(static_cast<double>(host.memory_total)),
                             format_bytes(static_cast<double>(host.memory_available))));
  PLOW_TRY(const ReadBandwidth one, measure_read_bandwidth(1, host.memory_available));
  line("read, 1 core", fmt::format("{} (best {})", rate(one.median), rate(one.best)));
  if (host.cores > 1) {
    PLOW_TRY(const ReadBandwidth all, measure_read_bandwidth(host.cores, host.memory_available));
    line("read, all", fmt::format("{} (best {}; {} by one core's own time)", rate(all.median), rate(all.best),
                                  rate(all.own_core)));
  }
  line("nvidia", describe_cuda_driver());
  line("amd", describe_hsa_runtime());
  if (path.empty()) return {};
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  return check_bundle(path, bundle, host);
}

}  // namespace plow
