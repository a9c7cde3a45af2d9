// plow_verify against seeded faults: what the reference machine can show to be wrong must be refused, and
// what is refused without need is counted. Faults of values (another weight, another attribute) are none of
// the order's, and the proofs say nothing of them.
#include "base/text_table.h"
#include "interp/reference/machine.h"
#include "interp/reference/seed_fault.h"
#include "interp/reference/testing/steps.h"
#include "packet/testing/seeded_toy.h"
#include "verifier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>

namespace plow::reference {
namespace {

// Mutants of each kind and toy. The suite makes some 850 mutants; PLOW_TEST_FULL=1 some 22000, in a quarter
// of an hour.
uint64_t seeds() { return std::getenv("PLOW_TEST_FULL") != nullptr ? 210 : 8; }

std::vector<SeededToy> toys() {
  std::vector<SeededToy> list;
  for (const uint32_t workers : {2u, 3u, 5u}) {
    SeededToyOptions options = small_toy_options(workers);
    options.seed = workers;
    list.push_back(make_seeded_toy(options));
  }
  return list;
}

struct Outcome {
  std::string finding;           // of the machine, the first
  std::vector<uint32_t> values;  // bits of the logits, when it had to compute
};

Outcome run_machine(const BundleFile& bundle, const SeededToy& toy, bool arithmetic) {
  Outcome outcome;
  Machine machine = Machine::create(bundle, toy.tape, {.slots = 3, .arithmetic = arithmetic}).value();
  for (const StepInput& input : mixed_steps()) {
    const StepOutput output = machine.run(input).value();
    if (!output.findings.empty()) return {finding_name(output.findings[0].kind), {}};
    for (const float logit : output.logits) outcome.values.push_back(std::bit_cast<uint32_t>(logit));
  }
  return outcome;
}

struct Mutant {
  uint64_t seed;
  size_t toy;
  std::string where;
  std::vector<std::byte> bytes;
};

struct Tally {
  uint32_t seeded = 0, unread = 0, wrong = 0, caught = 0, by_value = 0, harmless = 0, refused_harmless = 0;
};

// Faults that no byte of the bundle shows: the machine is told to clear another bank.
bool in_the_bytes(FaultKind kind) {
  return kind != FaultKind::kClearWrongBank && kind != FaultKind::kClearCurrentBank;
}

class Mutants : public testing::Test {
 protected:
  Mutants() {
    for (const SeededToy& toy : toys_) good_.push_back(run_machine(toy.open(), toy, true).values);
  }

  std::vector<Mutant> make(FaultKind kind) const {
    std::vector<Mutant> mutants;
    for (uint64_t seed = 0; seed < seeds(); ++seed) {
      for (size_t t = 0; t < toys_.size(); ++t) {
        BundleTables tables = toys_[t].tables;
        if (const auto fault = seed_fault(tables, kind, seed))
          mutants.push_back({seed, t, fault->where, serialise_bundle(tables)});
      }
    }
    return mutants;
  }

  void judge(const FaultName& kind, const Mutant& mutant, bool accepted, Tally& tally) const {
    ++tally.seeded;
    const auto bundle = BundleFile::from_bytes(mutant.bytes);
    if (!bundle.ok()) {  // the runtime does not even load it
      ++tally.unread;
      return;
    }
    const SeededToy& toy = toys_[mutant.toy];
    const Outcome order = run_machine(*bundle, toy, false);
    if (!order.finding.empty()) {
      ++tally.wrong;
      tally.caught += !accepted;
      EXPECT_FALSE(accepted) << kind.name << " (seed " << mutant.seed << ", toy " << mutant.toy << ") at "
                             << mutant.where << ": the machine finds " << order.finding
                             << ", and plow_verify accepts";
    } else if (run_machine(*bundle, toy, true).values != good_[mutant.toy]) {
      ++tally.by_value;
    } else {
      ++tally.harmless;
      tally.refused_harmless += !accepted;
    }
  }

  std::vector<SeededToy> toys_ = toys();
  std::vector<std::vector<uint32_t>> good_;
};

TEST_F(Mutants, OfNoFaultAreAccepted) {
  VerifierBatch batch;
  for (const SeededToy& toy : toys_) batch.add(serialise_bundle(toy.tables));
  const std::vector<std::string> verdicts = batch.verdicts();
  ASSERT_EQ(verdicts.size(), toys_.size());
  for (const std::string& verdict : verdicts) EXPECT_EQ(verdict, "accepted");
}

TEST_F(Mutants, ThatTheMachineShowsToBeWrongAreRejected) {
  TextTable table(
      {"fault", ">seeded", ">unread", ">wrong", ">rejected", ">by value", ">harmless", ">rejected"});
  const auto row = [&](const std::string& name, const Tally& t) {
    table.add_row({name, std::to_string(t.seeded), std::to_string(t.unread), std::to_string(t.wrong),
                   std::to_string(t.caught), std::to_string(t.by_value), std::to_string(t.harmless),
                   std::to_string(t.refused_harmless)});
  };
  Tally sum;
  for (const FaultName& kind : fault_names()) {
    if (!in_the_bytes(kind.kind)) continue;
    const std::vector<Mutant> mutants = make(kind.kind);
    VerifierBatch batch;
    for (const Mutant& mutant : mutants) batch.add(mutant.bytes);
    const std::vector<std::string> verdicts = batch.verdicts();
    ASSERT_EQ(verdicts.size(), mutants.size());
    Tally t;
    for (size_t m = 0; m < mutants.size(); ++m) judge(kind, mutants[m], verdicts[m] == "accepted", t);
    row(kind.name, t);
    sum = {sum.seeded + t.seeded,
           sum.unread + t.unread,
           sum.wrong + t.wrong,
           sum.caught + t.caught,
           sum.by_value + t.by_value,
           sum.harmless + t.harmless,
           sum.refused_harmless + t.refused_harmless};
  }
  row("all", sum);
  std::printf("%s", table.to_string().c_str());
}

}  // namespace
}  // namespace plow::reference
