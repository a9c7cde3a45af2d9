// Every tiny checkpoint's bundle on the reference machine: ten thousand legal orders in all, and faults of
// every kind.

#include "base/mapped_file.h"
#include "base/text_table.h"
#include "harness.h"
#include "interp/reference/seed_fault.h"
#include "interp/reference/testing/steps.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace plow::reference {
namespace {

namespace fs = std::filesystem;

const fs::path kTiny = fs::path(PLOW_SOURCE_DIR) / "build/fixtures/tiny";
// Over all models. The suite runs a tenth; PLOW_TEST_FULL=1 all, in some minutes.
size_t orders() { return std::getenv("PLOW_TEST_FULL") != nullptr ? 10000 : 1000; }
// Prompts of more than one row tile take some twenty times as long as a few rows, so only every so many
// orders have one.
constexpr size_t kLongEvery = 25;

std::vector<std::string> models() {
  std::vector<std::string> names;
  if (!fs::exists(kTiny)) return names;
  for (const auto& entry : fs::directory_iterator(kTiny)) {
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<uint32_t> prompt(uint32_t length, uint32_t salt) {
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < length; ++i) tokens.push_back((i * i * 7 + i * 31 + salt) % 256);
  return tokens;
}

// Three sequences of different ages in the few-rows program; then, of the last, three steps at one doorbell.
std::vector<StepInput> short_steps() {
  return {step_of({{0, 0, prompt(5, 1)}, {1, 0, prompt(2, 2)}}),
          step_of({{1, 2, {9}}, {0, 5, {7}}, {2, 0, prompt(4, 3)}}),
          step_of({{2, 4, {8}}, {1, 3, {6}}}, 0, 3)};
}

// A prompt of two row tiles beside a decode row, cut in two; then both decode.
std::vector<StepInput> long_steps() {
  return {step_of({{0, 0, prompt(3, 4)}}), step_of({{1, 0, prompt(70, 5)}, {0, 3, {11}}}, 1),
          step_of({{0, 4, {12}}, {1, 70, prompt(20, 6)}}, 1), step_of({{1, 90, {13}}, {0, 5, {14}}})};
}

struct Outcome {
  std::string finding;
  std::vector<uint32_t> tokens;
  std::vector<float> logits;
  bool operator==(const Outcome&) const = default;
};

Outcome run(Machine& machine, const std::vector<StepInput>& steps) {
  Outcome outcome;
  for (const StepInput& step : steps) {
    const auto output = machine.run(step);
    if (!output.ok()) return {output.error().message, {}, {}};
    if (!output->findings.empty()) return {verified(*output).error().message, {}, {}};
    for (const auto& sampled : output->sampled) {
      for (const Sampled& one : sampled) outcome.tokens.push_back(one.token);
    }
    outcome.logits.insert(outcome.logits.end(), output->logits.begin(), output->logits.end());
  }
  return outcome;
}

class Orders : public testing::TestWithParam<std::string> {
 protected:
  static CompileOptions options(const std::string& model, uint32_t workers) {
    CompileOptions result;
    result.checkpoint = kTiny / model;
    result.max_context = 128;
    result.max_slots = 3;
    result.chunk_rows = 100;  // not a multiple of the row tile
    result.n_workers = workers;
    return result;
  }
};

TEST_P(Orders, GiveTheSameTokensAndNoFinding) {
  const TestBundle compiled(options(GetParam(), 3));
  const BundleFile bundle = BundleFile::open(compiled.path() / "model.pkt").value();
  const MappedFile tape = MappedFile::open(compiled.path() / "weights.tape").value();
  Machine machine = Machine::create(bundle, tape.bytes(), {.slots = 3}).value();
  const Outcome few = run(machine, short_steps());
  machine.reset(Policy::kRoundRobin, 0);
  const Outcome many = run(machine, long_steps());
  ASSERT_EQ(few.finding, "");
  ASSERT_EQ(many.finding, "");
  const size_t n_models = models().size();
  for (size_t order = 1; order <= (orders() + n_models - 1) / n_models; ++order) {
    const auto policy = static_cast<Policy>(order % 5);
    const bool is_long = order % kLongEvery == 0;
    machine.reset(policy, order);
    const Outcome outcome = run(machine, is_long ? long_steps() : short_steps());
    ASSERT_EQ(outcome.finding, "") << "policy " << static_cast<int>(policy) << ", seed " << order;
    ASSERT_TRUE(outcome == (is_long ? many : few))
        << "policy " << static_cast<int>(policy) << ", seed " << order;
  }
}

INSTANTIATE_TEST_SUITE_P(Tiny, Orders, testing::ValuesIn(models()), [](const auto& one) {
  std::string name = one.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

// How often a fault of each kind is noticed. The few that are not change nothing, as seed_fault_test shows of
// the toy's.
TEST(Faults, EveryKindIsNoticedInACompiledModel) {
  if (models().empty()) GTEST_SKIP() << "no tiny checkpoints: scripts/test.sh makes them";
  CompileOptions options;
  options.checkpoint = kTiny / "gemma3";
  options.max_context = 128;
  options.max_slots = 3;
  options.chunk_rows = 100;
  options.n_workers = 3;
  const TestBundle compiled(options);
  const MappedFile tape = MappedFile::open(compiled.path() / "weights.tape").value();
  const BundleFile good = BundleFile::open(compiled.path() / "model.pkt").value();
  std::vector<Outcome> expected;
  for (const auto& steps : {short_steps(), long_steps()}) {
    Machine machine = Machine::create(good, tape.bytes(), {.slots = 3}).value();
    expected.push_back(run(machine, steps));
  }
  TextTable table({"fault", ">seeded", ">noticed", "first"});
  for (const FaultName& kind : fault_names()) {
    uint32_t seeded = 0, noticed = 0;
    std::string first;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      BundleTables tables = tables_of(good);
      const auto fault = seed_fault(tables, kind.kind, seed);
      if (!fault) continue;
      ++seeded;
      const auto bundle = BundleFile::from_bytes(serialise_bundle(tables));
      std::string how = bundle.ok() ? "" : bundle.error().message;
      for (size_t i = 0; i < 2 && how.empty(); ++i) {
        Machine machine =
            Machine::create(*bundle, tape.bytes(), {.slots = 3, .clear_distance = fault->clear_distance})
                .value();
        const Outcome outcome = run(machine, i == 0 ? short_steps() : long_steps());
        how = !outcome.finding.empty() || outcome == expected[i] ? outcome.finding : "other logits";
      }
      noticed += !how.empty();
      if (first.empty()) first = how;
    }
    EXPECT_GT(noticed, 0u) << kind.name;
    table.add_row({kind.name, std::to_string(seeded), std::to_string(noticed), first.substr(0, 120)});
  }
  fmt::print("{}", table.to_string());
}

}  // namespace
}  // namespace plow::reference
