#include "interp/reference/seed_fault.h"

#include "base/text_table.h"
#include "interp/reference/machine.h"
#include "interp/reference/testing/order_oracle.h"
#include "interp/reference/testing/steps.h"
#include "packet/testing/seeded_toy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace plow::reference {
namespace {

constexpr uint64_t kSeeds = 24;

SeededToy small_toy() { return make_seeded_toy(small_toy_options(3)); }

// What a run gives: the bits of all logits and tokens, or the first finding.
struct Outcome {
  std::string finding;
  std::vector<uint32_t> values;
};

Outcome run_all(const BundleFile& bundle, const SeededToy& toy, const MachineOptions& options) {
  Outcome outcome;
  Machine machine = Machine::create(bundle, toy.tape, options).value();
  for (const StepInput& input : mixed_steps()) {
    const StepOutput output = machine.run(input).value();
    if (!output.findings.empty()) {
      outcome.finding = finding_name(output.findings[0].kind);
      return outcome;
    }
    for (const float logit : output.logits) outcome.values.push_back(std::bit_cast<uint32_t>(logit));
    for (const auto& step : output.sampled) {
      for (const Sampled& sampled : step) outcome.values.push_back(sampled.token);
    }
  }
  return outcome;
}

std::string disorder_of(const BundleFile& bundle) {
  for (const StepInput& input : mixed_steps()) {
    const std::string found =
        OrderOracle(bundle.programs()[input.program], bundle.kv_groups(), input).disorder();
    if (!found.empty()) return found;
  }
  return "";
}

// Why a fault of this kind may change nothing; the oracle and the values then show that it does not. Null: it
// never may.
const char* why_harmless(FaultKind kind) {
  switch (kind) {
    case FaultKind::kSignalEarly:
    case FaultKind::kWaitRemoved:
    case FaultKind::kWaitLate:
    case FaultKind::kWaitBandDropped:
      return "another wait implies it";
    case FaultKind::kBuffersOverlapped:
      return "the two are never alive together";
    case FaultKind::kPacketsSwapped:
    case FaultKind::kPacketMoved:
      return "its waits alone put it where it must be";
    case FaultKind::kRowStride:
      return "there is no row tile to miss";
    default:
      return nullptr;
  }
}

struct Tally {
  uint32_t seeded = 0, refused = 0, by_value = 0, harmless = 0;
  std::map<std::string, uint32_t> found;  // by finding
};

class SeedFault : public ::testing::Test {
 protected:
  SeedFault() : toy_(small_toy()), good_(run_all(toy_.open(), toy_, options({}, Policy::kRoundRobin, 0))) {}

  MachineOptions options(const SeededFault& fault, Policy policy, uint64_t seed) const {
    return {.slots = 3, .policy = policy, .seed = seed, .clear_distance = fault.clear_distance};
  }

  // One mutant: how it is noticed, or why it need not be.
  void try_mutant(const FaultName& kind, uint64_t seed, Tally& tally) {
    BundleTables tables = toy_.tables;
    const auto fault = seed_fault(tables, kind.kind, seed);
    if (!fault) return;
    ++tally.seeded;
    const std::string what = fmt::format("{} {} (seed {}) at {}", kind.name, kind.text, seed, fault->where);
    const auto bundle = BundleFile::from_bytes(serialise_bundle(tables));
    if (!bundle.ok()) {
      ++tally.refused;
      return;
    }
    const Outcome outcome = run_all(*bundle, toy_, options(*fault, Policy::kRoundRobin, 0));
    if (!outcome.finding.empty()) {
      ++tally.found[outcome.finding];
      // Found in one order is found in every order: what is checked is what the tables promise.
      const Outcome other = run_all(*bundle, toy_, options(*fault, Policy::kRandom, seed));
      EXPECT_NE(other.finding, "") << what;
      // A changed head size moves keys and values within their block, which the oracle does not look into.
      const bool of_order =
          outcome.finding.rfind("unordered", 0) == 0 && kind.kind != FaultKind::kImmediateChanged;
      EXPECT_TRUE(!of_order || !disorder_of(*bundle).empty()) << what << ": a false alarm";
      return;
    }
    if (outcome.values != good_.values) {
      ++tally.by_value;
      return;
    }
    ++tally.harmless;
    EXPECT_NE(why_harmless(kind.kind), nullptr) << what << ": not noticed";
    EXPECT_EQ(disorder_of(*bundle), "") << what << ": not noticed";
    for (const Policy policy :
         {Policy::kRandom, Policy::kFurthestAhead, Policy::kDelayOne, Policy::kReverse}) {
      const Outcome again = run_all(*bundle, toy_, options(*fault, policy, seed));
      EXPECT_EQ(again.finding, "") << what;
      EXPECT_TRUE(again.values == good_.values) << what;
    }
  }

  SeededToy toy_;
  Outcome good_;
};

TEST_F(SeedFault, TheValidBundleIsInOrder) {
  EXPECT_EQ(good_.finding, "");
  EXPECT_EQ(disorder_of(toy_.open()), "");
}

TEST_F(SeedFault, EveryKindIsCaughtAndWhatIsNotIsHarmless) {
  TextTable table({"fault", ">seeded", ">refused", ">found", ">by value", ">harmless", "as"});
  uint32_t seeded = 0, harmless = 0;
  for (const FaultName& kind : fault_names()) {
    Tally tally;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) try_mutant(kind, seed, tally);
    std::string as;
    uint32_t found = 0;
    for (const auto& [name, count] : tally.found) {
      as += fmt::format("{}{} {}", as.empty() ? "" : ", ", count, name);
      found += count;
    }
    EXPECT_GT(tally.refused + found + tally.by_value, 0u) << kind.name << " is never caught";
    if (tally.harmless > 0)
      as += fmt::format("; harmless: {}", why_harmless(kind.kind) == nullptr ? "?" : why_harmless(kind.kind));
    table.add_row({kind.name, std::to_string(tally.seeded), std::to_string(tally.refused),
                   std::to_string(found), std::to_string(tally.by_value), std::to_string(tally.harmless),
                   as});
    seeded += tally.seeded;
    harmless += tally.harmless;
  }
  table.add_row({"all", std::to_string(seeded), "", "", "", std::to_string(harmless), ""});
  std::printf("%s", table.to_string().c_str());
}

}  // namespace
}  // namespace plow::reference
