// plow_verify's replay of rewrite logs against the compiler's own (src/rewrite/replay.cpp), which has no code
// in common with it: of logs that were changed in every way that a log can be, both say the same.
#include "compile/testing_bundle.h"
#include "rewrite/log.h"
#include "rewrite/rewrite.h"
#include "verifier.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace plow {
namespace {

class Replay : public testing::Test {
 protected:
  Replay() {
    RewriteOptions options;
    options.n_workers = 3;
    RewriteResult result = rewrite_graph(toy_graph({.layers = 2, .window = 8}), options).value();
    graph_ = std::move(result.graph);
    log_ = std::move(result.log);
    tables_ = tables_of_graph(graph_, Isa::kX86_64, 3, 64, 2);
  }

  void ask(std::string log) {
    tables_.rewrite_log = log;
    batch_.add(serialise_bundle(tables_));
    logs_.push_back(std::move(log));
  }
  bool compiler_accepts(const std::string& log) const {
    const auto parsed = parse_rewrite_log(log);
    return parsed.ok() && check_rewrite_log(*parsed, graph_).ok();
  }
  // Both verdicts of all logs; how many were refused.
  size_t compare() const {
    const auto verdicts = batch_.verdicts();
    EXPECT_EQ(verdicts.size(), logs_.size());
    size_t refused = 0;
    for (size_t i = 0; i < verdicts.size(); ++i) {
      const bool accepted = compiler_accepts(logs_[i]);
      EXPECT_EQ(verdicts[i] == "accepted", accepted) << verdicts[i] << "\n" << logs_[i];
      refused += !accepted;
    }
    return refused;
  }

  OpGraph graph_;
  std::string log_;
  BundleTables tables_;
  VerifierBatch batch_;
  std::vector<std::string> logs_;
};

TEST_F(Replay, AcceptsWhatTheRewriterWritesAndABundleThatWasNotRewritten) {
  ask(log_);
  EXPECT_EQ(compare(), 0u);
  VerifierBatch off;
  tables_.rewrite_log = kRewriterOff;
  off.add(serialise_bundle(tables_));
  EXPECT_EQ(off.verdicts(), std::vector<std::string>{"accepted"});
}

TEST_F(Replay, OfFiringsLeftOutRenamedOrOverOtherNodesSaysWhatTheCompilerSays) {
  const RewriteLog log = parse_rewrite_log(log_).value();
  ASSERT_GT(log.firings.size(), 10u);
  const auto n_terms = static_cast<uint32_t>(log.terms.nodes.size());
  for (size_t f = 0; f < log.firings.size(); ++f) {
    const auto change = [&](auto edit) {
      RewriteLog changed = log;
      edit(changed);
      ask(print_rewrite_log(changed));
    };
    change([&](RewriteLog& l) { l.firings.erase(l.firings.begin() + static_cast<ptrdiff_t>(f)); });
    change([&](RewriteLog& l) {
      l.firings[f].rule = (l.firings[f].rule + 1) % static_cast<uint32_t>(rule_texts().size());
    });
    change([&](RewriteLog& l) {
      l.firings[f].matched[0].value = (l.firings[f].matched[0].value + 1) % n_terms;
    });
    change([&](RewriteLog& l) {
      l.firings[f].right.back().value = (l.firings[f].right.back().value + 1) % n_terms;
    });
    change([&](RewriteLog& l) { l.firings[f].right.push_back(l.firings[f].right.back()); });
    change([&](RewriteLog& l) { l.firings[f].matched.pop_back(); });
    change([&](RewriteLog& l) { std::swap(l.firings[f], l.firings[0]); });
  }
  EXPECT_GT(compare(), logs_.size() / 2);
}

TEST_F(Replay, OfNodesWithOtherAttributesOrInputsSaysWhatTheCompilerSays) {
  const RewriteLog log = parse_rewrite_log(log_).value();
  for (uint32_t i = log.n_before; i < log.terms.nodes.size(); ++i) {
    const Node& node = log.terms.nodes[i];
    if (is_leaf(node.op)) continue;
    if (!op_def(node.op).attributes.empty()) {
      RewriteLog changed = log;
      changed.terms.nodes[i].attributes[0] = attribute_bits(0.75f);
      if (op_def(node.op).attributes[0].kind == AttributeKind::kU32)
        changed.terms.nodes[i].attributes[0] = node.attributes[0] + 1;
      ask(print_rewrite_log(changed));
    }
    RewriteLog changed = log;
    uint32_t& input = changed.terms.inputs[node.first_input].value;
    input = input == 0 ? 1 : input - 1;
    ask(print_rewrite_log(changed));
  }
  EXPECT_GT(compare(), logs_.size() / 2);
}

TEST_F(Replay, RefusesTextAfterTheEndOfAnyLineAndALogThatIsCut) {
  VerifierBatch batch;
  size_t asked = 0;
  const auto add = [&](const std::string& log) {
    tables_.rewrite_log = log;
    batch.add(serialise_bundle(tables_));
    ++asked;
  };
  for (size_t end = log_.find('\n'); end != std::string::npos; end = log_.find('\n', end + 1)) {
    std::string longer = log_;
    add(longer.insert(end, " 1"));
    if (end > 0 && end + 1 < log_.size()) add(log_.substr(0, end + 1));
  }
  const auto verdicts = batch.verdicts();
  ASSERT_EQ(verdicts.size(), asked);
  for (size_t i = 0; i < asked; ++i)
    EXPECT_TRUE(verdicts[i].starts_with("rejected: rewrite log")) << i << ": " << verdicts[i];
}

}  // namespace
}  // namespace plow
