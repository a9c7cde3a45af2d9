#include "base/digest.h"
#include "bundle/bundle.h"
#include "bundle/check.h"
#include "bundle/sections.h"

#include <fmt/format.h>

#include <cstring>

namespace plow {
namespace {

constexpr const char* kGetAnother = "copy the bundle again, or compile it again with plowc";

// A header whose magic, version, length and digest are right: the rest of the file is what its writer wrote.
Status check_whole(const BundleHeader& header, std::span<const std::byte> bytes) {
  if (header.magic != kBundleMagic) {
    return input_error(
        fmt::format("not a plow bundle: it begins with {:#018x} instead of {:#018x}; give the model.pkt of a "
                    "directory that plowc wrote",
                    header.magic, kBundleMagic));
  }
  if (header.abi_version != kAbiVersion) {
    return input_error(fmt::format(
        "the bundle has ABI version {}, and this program reads version {}; compile it again with the plowc "
        "that belongs to this program",
        header.abi_version, kAbiVersion));
  }
  if (header.file_bytes != bytes.size()) {
    return input_error(fmt::format("the bundle should have {} bytes and has {}: it was cut or extended; {}",
                                   header.file_bytes, bytes.size(), kGetAnother));
  }
  BundleHeader cleared = header;
  cleared.body_digest_low = cleared.body_digest_high = 0;
  const Digest128 digest =
      xxh3_128_joined({std::as_bytes(std::span(&cleared, 1)), bytes.subspan(sizeof(BundleHeader))});
  const Digest128 expected{header.body_digest_low, header.body_digest_high};
  if (!(digest == expected)) {
    return input_error(fmt::format("the bundle was altered: its digest is {} and should be {}; {}",
                                   to_hex(digest), to_hex(expected), kGetAnother));
  }
  return {};
}

// The writer's layout is the only one: sections in order, each at the next multiple of 64, none overlapping,
// nothing after the last.
Status check_sections(const BundleHeader& header) {
  if (header.n_sections != kSectionLayouts.size()) {
    return input_error(fmt::format("the bundle has {} sections, and ABI version {} has {}", header.n_sections,
                                   kAbiVersion, kSectionLayouts.size()));
  }
  uint64_t end = sizeof(BundleHeader);
  for (size_t i = 0; i < kSectionLayouts.size(); ++i) {
    const Section& section = header.sections[i];
    const SectionLayout& layout = kSectionLayouts[i];
    if (section.kind != layout.kind) {
      return input_error(fmt::format("section {} is of kind {}, not of kind {} ({})", i,
                                     static_cast<uint32_t>(section.kind), static_cast<uint32_t>(layout.kind),
                                     layout.name));
    }
    if (section.bytes != uint64_t{section.count} * layout.element_bytes) {
      return input_error(fmt::format("section '{}' has {} bytes, which are not {} elements of {}",
                                     layout.name, section.bytes, section.count, layout.element_bytes));
    }
    if (section.offset != round_up_to_section(end) ||
        section.bytes > header.file_bytes - std::min(header.file_bytes, section.offset)) {
      return input_error(
          fmt::format("section '{}' (offset {}, {} bytes) does not follow the one before it (which ends at "
                      "{}) inside the "
                      "file of {} bytes",
                      layout.name, section.offset, section.bytes, end, header.file_bytes));
    }
    end = section.offset + section.bytes;
  }
  if (end != header.file_bytes) {
    return input_error(fmt::format("{} bytes follow the last section", header.file_bytes - end));
  }
  return {};
}

template <class T>
std::span<const T> section(std::span<const std::byte> bytes, const BundleHeader& header, SectionKind kind) {
  for (size_t i = 0; i < kSectionLayouts.size(); ++i) {
    if (kSectionLayouts[i].kind != kind) continue;
    return {reinterpret_cast<const T*>(bytes.data() + header.sections[i].offset), header.sections[i].count};
  }
  return {};
}

std::string_view text_section(std::span<const std::byte> bytes, const BundleHeader& header,
                              SectionKind kind) {
  const auto text = section<char>(bytes, header, kind);
  return {text.data(), text.size()};
}

// Takes the next `count` elements off the front of `rest`, which must begin at index `first` of `all`.
template <class T>
Result<std::span<const T>> take(std::span<const T> all, std::span<const T>& rest, uint64_t first,
                                uint64_t count, const char* what) {
  const size_t position = all.size() - rest.size();
  if (first != position || count > rest.size()) {
    return input_error(
        fmt::format("{} [{}, {}) are not the next of the {} that the bundle has (the next is {})", what,
                    first, first + count, all.size(), position));
  }
  const auto taken = rest.first(count);
  rest = rest.subspan(count);
  return taken;
}

// The sections that programs share, and what of them is not yet given to a program.
struct Tables {
  std::span<const WorkerEntry> workers;
  std::span<const Packet> packets;
  std::span<const Wait> waits;
  std::span<const Signal> signals;
  std::span<const StreamEntry> stream;
  std::span<const TensorEntry> tensors;
};

Result<ProgramView> cut_program(const Tables& all, Tables& rest, const ProgramEntry& entry,
                                uint32_t n_workers) {
  ProgramView view;
  view.entry = &entry;
  PLOW_TRY(view.workers,
           take(all.workers, rest.workers, all.workers.size() - rest.workers.size(), n_workers, "workers"));
  PLOW_TRY(view.packets, take(all.packets, rest.packets, entry.first_packet, entry.n_packets, "packets"));
  PLOW_TRY(view.waits, take(all.waits, rest.waits, entry.first_wait, entry.n_waits, "waits"));
  PLOW_TRY(view.signals, take(all.signals, rest.signals, entry.first_signal, entry.n_signals, "signals"));
  PLOW_TRY(view.stream, take(all.stream, rest.stream, entry.first_stream, entry.n_stream, "stream entries"));
  PLOW_TRY(view.tensors, take(all.tensors, rest.tensors, entry.first_tensor, entry.n_tensors, "tensors"));
  return view;
}

Status check_all_taken(const Tables& rest) {
  const size_t left = rest.workers.size() + rest.packets.size() + rest.waits.size() + rest.signals.size() +
                      rest.stream.size() + rest.tensors.size();
  if (left == 0) return {};
  return input_error(fmt::format(
      "{} workers, {} packets, {} waits, {} signals, {} stream entries and {} tensors belong to no program",
      rest.workers.size(), rest.packets.size(), rest.waits.size(), rest.signals.size(), rest.stream.size(),
      rest.tensors.size()));
}

}  // namespace

Result<BundleFile> BundleFile::open(const std::filesystem::path& model_pkt) {
  BundleFile bundle;
  PLOW_TRY(bundle.file_, MappedFile::open(model_pkt));
  if (const Status status = bundle.parse(bundle.file_.bytes()); !status.ok())
    return status.error().at(model_pkt.string());
  return bundle;
}

Result<BundleFile> BundleFile::from_bytes(std::vector<std::byte> bytes) {
  BundleFile bundle;
  bundle.owned_ = std::move(bytes);
  PLOW_TRY_STATUS(bundle.parse(bundle.owned_));
  return bundle;
}

Status BundleFile::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(BundleHeader)) {
    return input_error(fmt::format("not a plow bundle: {} bytes are fewer than its header's {}", bytes.size(),
                                   sizeof(BundleHeader)));
  }
  header_ = reinterpret_cast<const BundleHeader*>(bytes.data());
  PLOW_TRY_STATUS(check_whole(*header_, bytes));
  PLOW_TRY_STATUS(check_header(*header_));
  PLOW_TRY_STATUS(check_sections(*header_));

  const auto entries = section<ProgramEntry>(bytes, *header_, SectionKind::kPrograms);
  kv_groups_ = section<KvGroup>(bytes, *header_, SectionKind::kKvGroups);
  sources_ = section<SourceTensor>(bytes, *header_, SectionKind::kSources);
  names_ = text_section(bytes, *header_, SectionKind::kNames);
  graph_text_ = text_section(bytes, *header_, SectionKind::kGraphText);
  rewrite_log_ = text_section(bytes, *header_, SectionKind::kRewriteLog);
  build_record_ = text_section(bytes, *header_, SectionKind::kBuildRecord);
  const BundleParts parts{header_, entries, kv_groups_, sources_, names_.size()};
  PLOW_TRY_STATUS(check_parts(parts));

  const Tables all{section<WorkerEntry>(bytes, *header_, SectionKind::kWorkers),
                   section<Packet>(bytes, *header_, SectionKind::kPackets),
                   section<Wait>(bytes, *header_, SectionKind::kWaits),
                   section<Signal>(bytes, *header_, SectionKind::kSignals),
                   section<StreamEntry>(bytes, *header_, SectionKind::kStream),
                   section<TensorEntry>(bytes, *header_, SectionKind::kTensors)};
  Tables rest = all;
  for (const ProgramEntry& entry : entries) {
    const std::string where = fmt::format("program {}", programs_.size());
    auto view = cut_program(all, rest, entry, header_->n_workers);
    if (!view.ok()) return view.error().at(where);
    if (const Status status = check_program(parts, *view); !status.ok()) return status.error().at(where);
    programs_.push_back(*view);
  }
  return check_all_taken(rest);
}

std::string_view BundleFile::source_name(const SourceTensor& source) const {
  return names_.substr(source.name_offset, source.name_bytes);
}

}  // namespace plow
