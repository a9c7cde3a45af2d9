#include "rewrite/match.h"

#include "base/check.h"

namespace plow {
namespace {

class PatternCompiler {
 public:
  PatternCompiler(const RewritePattern& pattern, const PatternVariables& variables)
      : pattern_(pattern) {
    program_.value_registers.assign(variables.values.size(), ENodeId::kNone);
    program_.n_attributes = static_cast<uint32_t>(variables.attributes.size());
    program_.n_registers = 1;
  }

  MatchProgram run() {
    compile(0, 0);
    return std::move(program_);
  }

 private:
  void compile(uint32_t term_index, uint32_t in) {
    const PatternTerm& term = pattern_.terms[term_index];
    if (term.kind == PatternTerm::Kind::kVariable) {
      uint32_t& place = program_.value_registers[term.variable];
      if (place == ENodeId::kNone) {
        place = in;
      } else {
        program_.instructions.push_back({MatchInstruction::Kind::kCompare, in, place});
      }
      return;
    }
    PLOW_CHECK(term.kind == PatternTerm::Kind::kOperator, "a left side cannot compute");
    const uint32_t out = program_.n_registers;
    program_.n_registers += static_cast<uint32_t>(term.inputs.size());
    program_.instructions.push_back({MatchInstruction::Kind::kBind, in, out, term.op, term.attributes});
    for (uint32_t i = 0; i < term.inputs.size(); ++i) compile(term.inputs[i], out + i);
  }

  const RewritePattern& pattern_;
  MatchProgram program_;
};

class MatchMachine {
 public:
  MatchMachine(const EGraph& egraph, const MatchProgram& program)
      : egraph_(egraph),
        program_(program),
        registers_(program.n_registers),
        attributes_(program.n_attributes),
        bound_(program.n_attributes, false) {}

  std::vector<RuleMatch> run(ENodeId root) {
    registers_[0] = root;
    step(0);
    return std::move(matches_);
  }

 private:
  void step(size_t at) {
    if (at == program_.instructions.size()) return report();
    const MatchInstruction& instruction = program_.instructions[at];
    if (instruction.kind == MatchInstruction::Kind::kCompare) {
      if (egraph_.equal(registers_[instruction.in], registers_[instruction.out])) step(at + 1);
      return;
    }
    for (const ENodeId id : egraph_.eclass(registers_[instruction.in]).nodes) {
      const ENode& node = egraph_.node(id);
      if (node.op != instruction.op) continue;
      const std::vector<bool> bound_before = bound_;
      if (match_attributes(instruction, node)) {
        for (uint32_t i = 0; i < node.n_inputs; ++i) registers_[instruction.out + i] = node.inputs[i];
        matched_.push_back(id);
        step(at + 1);
        matched_.pop_back();
      }
      bound_ = bound_before;
    }
  }

  bool match_attributes(const MatchInstruction& instruction, const ENode& node) {
    for (size_t i = 0; i < instruction.attributes.size(); ++i) {
      if (!bind_attribute(instruction.attributes[i], node.attributes[i], attributes_, bound_)) return false;
    }
    return true;
  }

  void report() {
    RuleMatch match{matched_, {}, attributes_};
    for (const uint32_t place : program_.value_registers) match.values.push_back(registers_[place]);
    matches_.push_back(std::move(match));
  }

  const EGraph& egraph_;
  const MatchProgram& program_;
  std::vector<ENodeId> registers_;
  std::vector<uint32_t> attributes_;
  std::vector<bool> bound_;
  std::vector<ENodeId> matched_;
  std::vector<RuleMatch> matches_;
};

}  // namespace

MatchProgram compile_pattern(const RewritePattern& pattern, const PatternVariables& variables) {
  return PatternCompiler(pattern, variables).run();
}

std::vector<RuleMatch> match_class(const EGraph& egraph, const MatchProgram& program, ENodeId root) {
  return MatchMachine(egraph, program).run(root);
}

}  // namespace plow
