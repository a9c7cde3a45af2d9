#include "plowc/explain_command.h"

#include "base/text_table.h"
#include "bundle/disassemble.h"
#include "compile/pipeline.h"
#include "compile/provenance.h"
#include "compile/viz.h"
#include "console/bundle_dir.h"
#include "rewrite/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace plow {

namespace {

std::string program_heading(uint32_t index, const ProgramEntry& entry) {
  return fmt::format("# program {}: up to {} rows, {} sampled\n", index, entry.max_rows, entry.max_samples);
}

// One text a program, each under a heading.
template <class Print>
std::string by_program(const BundleFile& bundle, Print print) {
  std::string text;
  for (uint32_t p = 0; p < bundle.programs().size(); ++p) {
    text += program_heading(p, *bundle.programs()[p].entry) + print(p);
  }
  return text;
}

Result<std::string> graph_text(const BundleFile& bundle) { return std::string(bundle.graph_text()); }

Result<std::string> rewrite_text(const BundleFile& bundle) {
  if (bundle.rewrite_log() == kRewriterOff) return std::string("the rewriter was switched off (--no-rewrite)\n");
  PLOW_TRY(const OpGraph after, parse_graph(bundle.graph_text()));
  PLOW_TRY(const RewriteLog log, parse_rewrite_log(bundle.rewrite_log()));
  return explain_rewrite(log, after);
}

Result<std::string> tiles_text(const BundleFile& bundle) {
  PLOW_TRY(const BundleStages stages, derive_stages(bundle));
  return by_program(bundle,
                    [&](uint32_t p) { return print_tile_graph(stages.graph, stages.programs[p].tiles); });
}

Result<std::string> schedule_text(const BundleFile& bundle) {
  PLOW_TRY(const BundleStages stages, derive_stages(bundle));
  return by_program(bundle, [&](uint32_t p) {
    return print_schedule(stages.graph, stages.programs[p].tiles, stages.programs[p].schedule);
  });
}

Result<std::string> packets_text(const BundleFile& bundle) {
  return by_program(bundle, [&](uint32_t p) { return disassemble(bundle.programs()[p]); });
}

// The memory of the device, then where each value of the graph lies in the arena of each program.
Result<std::string> memory_text(const BundleFile& bundle) {
  const BundleHeader& header = bundle.header();
  std::string text = fmt::format("# {} sequences of {} positions\n", header.max_slots, header.max_context);
  text += memory_table(plan_memory(bundle, header.max_slots, header.max_context));
  return text + by_program(bundle, [&](uint32_t p) {
           std::vector<const TensorEntry*> buffers;
           for (const TensorEntry& tensor : bundle.programs()[p].tensors) {
             if (tensor.space == Space::kArena) buffers.push_back(&tensor);
           }
           std::stable_sort(buffers.begin(), buffers.end(),
                            [](const auto* a, const auto* b) { return a->offset < b->offset; });
           TextTable table({">offset", ">bytes", "value"});
           for (const TensorEntry* tensor : buffers) {
             table.add_row({std::to_string(tensor->offset), std::to_string(tensor->bytes),
                            tensor_label(bundle, *tensor)});
           }
           return fmt::format("arena of {} bytes\n", bundle.programs()[p].entry->arena_bytes) +
                  table.to_string();
         });
}

Result<std::string> header_text(const BundleFile& bundle) {
  const BundleHeader& h = bundle.header();
  return fmt::format(
      "isa {}\nworkers {}\nvocab {}\nlayers {}\nhidden {}\nmax_context {}\nmax_slots {}\nkv_dtype "
      "{}\nscratch_bytes {}\n",
      isa_name(h.isa), h.n_workers, h.vocab, h.n_layers, h.hidden, h.max_context, h.max_slots,
      dtype_name(h.kv_dtype), h.scratch_bytes);
}

// Names and digests of the tensors in the tape.
Result<std::string> weights_text(const BundleFile& bundle) {
  std::string text;
  for (const SourceTensor& source : bundle.sources()) {
    text += fmt::format("{} {} bytes {:016x}{:016x}\n", bundle.source_name(source), source.tape_bytes,
                        source.digest_high, source.digest_low);
  }
  return text;
}

struct Stage {
  const char* name;
  Result<std::string> (*text)(const BundleFile&);
};
// The stages of the road; diff looks at the header and the weights too.
constexpr std::array<Stage, 6> kStages = {{{"graph", graph_text},
                                           {"rewrite", rewrite_text},
                                           {"tiles", tiles_text},
                                           {"schedule", schedule_text},
                                           {"packets", packets_text},
                                           {"memory", memory_text}}};

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The first line that differs, with the lines before it that are common.
void print_first_difference(const std::string& a, const std::string& b) {
  constexpr size_t kContext = 2, kShown = 4;
  const auto lines_a = lines_of(a), lines_b = lines_of(b);
  const auto [at_a, at_b] = std::mismatch(lines_a.begin(), lines_a.end(), lines_b.begin(), lines_b.end());
  const size_t first = static_cast<size_t>(at_a - lines_a.begin());
  fmt::print("first difference in line {} ({} and {} lines):\n", first + 1, lines_a.size(), lines_b.size());
  for (size_t i = first - std::min(first, kContext); i < first; ++i) fmt::print("    {}\n", lines_a[i]);
  for (size_t i = first; i < std::min(first + kShown, lines_a.size()); ++i)
    fmt::print("  - {}\n", lines_a[i]);
  for (size_t i = first; i < std::min(first + kShown, lines_b.size()); ++i)
    fmt::print("  + {}\n", lines_b[i]);
}

// "A:B" or "A:B:C" as numbers; empty when the text is something else.
std::vector<uint32_t> numbers_of(std::string_view text) {
  std::vector<uint32_t> numbers;
  while (true) {
    uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return {};
    numbers.push_back(number);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) return numbers;
    if (text.front() != ':') return {};
    text.remove_prefix(1);
  }
}

struct PacketPlace {
  uint32_t program = 0, packet = 0;
};

Result<PacketPlace> find_packet(const BundleFile& bundle, const std::string& text) {
  const std::vector<uint32_t> numbers = numbers_of(text);
  if (numbers.size() != 2 && numbers.size() != 3) {
    return usage_error(fmt::format(
        "'{}' names no packet. Give PROGRAM:PACKET (0:17) or PROGRAM:WORKER:INDEX (0:1:5).", text));
  }
  const auto programs = bundle.programs();
  if (numbers[0] >= programs.size()) {
    return usage_error(fmt::format("there is no program {}: the bundle has programs 0 to {}.", numbers[0],
                                   programs.size() - 1));
  }
  const ProgramView& program = programs[numbers[0]];
  if (numbers.size() == 2) {
    if (numbers[1] < program.packets.size()) return PacketPlace{numbers[0], numbers[1]};
    return usage_error(fmt::format("there is no packet {}: program {} has packets 0 to {}.", numbers[1],
                                   numbers[0], program.packets.size() - 1));
  }
  if (numbers[1] >= program.workers.size()) {
    return usage_error(fmt::format("there is no worker {}: the bundle has workers 0 to {}.", numbers[1],
                                   program.workers.size() - 1));
  }
  const WorkerEntry& worker = program.workers[numbers[1]];
  if (numbers[2] >= worker.n_packets) {
    return usage_error(fmt::format("worker {} has {} packets in program {}, the last is {}.", numbers[1],
                                   worker.n_packets, numbers[0], worker.n_packets - 1));
  }
  return PacketPlace{numbers[0], worker.first_packet + numbers[2]};
}

}  // namespace

const std::vector<std::string>& stage_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Stage& stage : kStages) list.emplace_back(stage.name);
    return list;
  }();
  return names;
}

Status explain_stage(const std::filesystem::path& path, const std::string& name) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  const auto stage =
      std::find_if(kStages.begin(), kStages.end(), [&](const Stage& s) { return name == s.name; });
  PLOW_CHECK(stage != kStages.end(), "{} is no stage", name);
  PLOW_TRY(const std::string text, stage->text(bundle.file));
  fmt::print("{}", text);
  return {};
}

Status explain_why(const std::filesystem::path& path, const std::string& packet) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  PLOW_TRY(const PacketPlace place, find_packet(bundle.file, packet));
  PLOW_TRY(const BundleStages stages, derive_stages(bundle.file));
  fmt::print("{}", explain_packet(bundle.file, stages, place.program, place.packet));
  return {};
}

Result<int> explain_diff(const std::filesystem::path& path_a, const std::filesystem::path& path_b) {
  PLOW_TRY(const BundleDir a, open_bundle_dir(path_a));
  PLOW_TRY(const BundleDir b, open_bundle_dir(path_b));
  std::vector<Stage> stages = {{"header", header_text}};
  stages.insert(stages.end(), kStages.begin(), kStages.end());
  stages.push_back({"weights", weights_text});
  for (const Stage& stage : stages) {
    PLOW_TRY(const std::string text_a, stage.text(a.file));
    PLOW_TRY(const std::string text_b, stage.text(b.file));
    if (text_a == text_b) {
      fmt::print("{:<9} the same\n", stage.name);
      continue;
    }
    fmt::print("{:<9} DIFFERS, ", stage.name);
    print_first_difference(text_a, text_b);
    return 1;
  }
  return 0;
}

Status write_viz(const std::filesystem::path& path, const std::filesystem::path& page) {
  PLOW_TRY(const BundleDir bundle, open_bundle_dir(path));
  PLOW_TRY(const BundleStages stages, derive_stages(bundle.file));
  const std::string html =
      viz_page(bundle.file, stages, {bundle.names.served_name, bundle.names.architecture});
  PLOW_TRY_STATUS(write_whole_file(page, html));
  fmt::print("{}: {}. Open it in a browser; it needs no network.\n", page.string(),
             format_bytes(static_cast<double>(html.size())));
  return {};
}

}  // namespace plow
