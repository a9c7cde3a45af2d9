#include "base/digest.h"
#include "bundle/bundle.h"
#include "bundle/sections.h"

#include <cstring>

namespace plow {
namespace {

template <class T>
uint32_t append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
  return static_cast<uint32_t>(from.size());
}

// The sections as they lie in the file.
struct Sections {
  std::vector<ProgramEntry> programs;
  ProgramTables all;  // the tables of every program, one after another; its entry is not used
  std::vector<SourceTensor> sources;
  std::string names;
};

Sections gather(const BundleTables& tables) {
  Sections out;
  for (const ProgramTables& program : tables.programs) {
    ProgramEntry entry = program.entry;
    entry.first_packet = static_cast<uint32_t>(out.all.packets.size());
    entry.first_wait = static_cast<uint32_t>(out.all.waits.size());
    entry.first_signal = static_cast<uint32_t>(out.all.signals.size());
    entry.first_stream = static_cast<uint32_t>(out.all.stream.size());
    entry.first_tensor = static_cast<uint32_t>(out.all.tensors.size());
    append(out.all.workers, program.workers);
    entry.n_packets = append(out.all.packets, program.packets);
    entry.n_waits = append(out.all.waits, program.waits);
    entry.n_signals = append(out.all.signals, program.signals);
    entry.n_stream = append(out.all.stream, program.stream);
    entry.n_tensors = append(out.all.tensors, program.tensors);
    out.programs.push_back(entry);
  }
  for (const SourceRecord& source : tables.sources) {
    out.sources.push_back({.name_offset = static_cast<uint32_t>(out.names.size()),
                           .name_bytes = static_cast<uint32_t>(source.name.size()),
                           .tape_offset = source.tape_offset,
                           .tape_bytes = source.tape_bytes,
                           .digest_low = source.digest_low,
                           .digest_high = source.digest_high});
    out.names += source.name;
  }
  return out;
}

template <class Container>
std::span<const std::byte> bytes_of(const Container& container) {
  return std::as_bytes(std::span(container.data(), container.size()));
}

}  // namespace

std::vector<std::byte> serialise_bundle(const BundleTables& tables) {
  const Sections sections = gather(tables);
  const std::array<std::span<const std::byte>, kSectionLayouts.size()> bodies = {
      bytes_of(sections.programs),    bytes_of(sections.all.workers), bytes_of(sections.all.packets),
      bytes_of(sections.all.waits),   bytes_of(sections.all.signals), bytes_of(sections.all.stream),
      bytes_of(sections.all.tensors), bytes_of(tables.kv_groups),     bytes_of(sections.sources),
      bytes_of(tables.graph_text),    bytes_of(tables.rewrite_log),   bytes_of(tables.build_record),
      bytes_of(sections.names),
  };

  BundleHeader header = tables.header;
  header.magic = kBundleMagic;
  header.abi_version = kAbiVersion;
  header.n_sections = static_cast<uint32_t>(bodies.size());
  uint64_t end = sizeof(BundleHeader);
  for (size_t i = 0; i < bodies.size(); ++i) {
    const uint64_t offset = round_up_to_section(end);
    header.sections[i] = {.kind = kSectionLayouts[i].kind,
                          .count = static_cast<uint32_t>(bodies[i].size() / kSectionLayouts[i].element_bytes),
                          .offset = offset,
                          .bytes = bodies[i].size()};
    end = offset + bodies[i].size();
  }

  std::vector<std::byte> file(end);
  std::memcpy(file.data(), &header, sizeof(header));
  for (size_t i = 0; i < bodies.size(); ++i) {
    if (!bodies[i].empty())
      std::memcpy(file.data() + header.sections[i].offset, bodies[i].data(), bodies[i].size());
  }
  seal_bundle(file);
  return file;
}

void seal_bundle(std::span<std::byte> bytes) {
  PLOW_CHECK(bytes.size() >= sizeof(BundleHeader), "{} bytes hold no header", bytes.size());
  BundleHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  header.file_bytes = bytes.size();
  header.body_digest_low = header.body_digest_high = 0;
  const Digest128 digest =
      xxh3_128_joined({std::as_bytes(std::span(&header, 1)), bytes.subspan(sizeof(BundleHeader))});
  header.body_digest_low = digest.low;
  header.body_digest_high = digest.high;
  std::memcpy(bytes.data(), &header, sizeof(header));
}

BundleTables tables_of(const BundleFile& bundle) {
  BundleTables tables;
  tables.header = bundle.header();
  for (const ProgramView& view : bundle.programs()) {
    tables.programs.push_back({.entry = *view.entry,
                               .workers = {view.workers.begin(), view.workers.end()},
                               .packets = {view.packets.begin(), view.packets.end()},
                               .waits = {view.waits.begin(), view.waits.end()},
                               .signals = {view.signals.begin(), view.signals.end()},
                               .stream = {view.stream.begin(), view.stream.end()},
                               .tensors = {view.tensors.begin(), view.tensors.end()}});
  }
  tables.kv_groups.assign(bundle.kv_groups().begin(), bundle.kv_groups().end());
  for (const SourceTensor& source : bundle.sources()) {
    tables.sources.push_back({.name = std::string(bundle.source_name(source)),
                              .tape_offset = source.tape_offset,
                              .tape_bytes = source.tape_bytes,
                              .digest_low = source.digest_low,
                              .digest_high = source.digest_high});
  }
  tables.graph_text = bundle.graph_text();
  tables.rewrite_log = bundle.rewrite_log();
  tables.build_record = bundle.build_record();
  return tables;
}

}  // namespace plow
