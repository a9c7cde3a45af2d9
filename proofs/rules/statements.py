#!/usr/bin/env python3
"""statements.py RULES... [--proved SOUND | --table SOUND]: writes on standard output, in Coq, what each rewriting rule claims over the values
of Values.v; with --proved, that each rule of which the file SOUND states a theorem is proved there, as its text claims it; with --table, these
rules as OCaml, for the replay of plow_verify.

The rules are src/rewrite/rules/*.def, the text that the rewriter itself compiles. A rule of which SOUND has no theorem is off in the
rewriter (src/rewrite/proved_rules.cmake looks for the same lines), and is named here. A rule that is changed changes what its theorem
has to say, and the tree does not build until that is proved.
"""
import pathlib
import re
import sys

RULE = re.compile(r'PLOW_RULE\(\s*(\w+),\s*(\w+),\s*\w+,\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+),')

# Sorts: V a matrix, S the cache, I rows to gather, N a natural number, R a number.
OPERATORS = {  # attributes in the order of the Coq definition, inputs, result
    "add": ([], "VV", "V"),
    "scale": ([("factor", "R")], "V", "V"),
    "soft_cap": ([("cap", "R")], "V", "V"),
    "bias_add": ([], "VV", "V"),
    "glu": ([("activation", "N")], "VV", "V"),
    "rms_norm": ([("eps", "R"), ("offset", "R"), ("group", "N")], "VV", "V"),
    "linear": ([], "VV", "V"),
    "linear_part": ([("k_begin", "N"), ("k_end", "N")], "VV", "V"),
    "rope": ([("head_dim", "N")], "VV", "V"),
    "kv_append": ([("head_dim", "N")], "VVS", "S"),
    "attention": ([("head_dim", "N"), ("window", "N"), ("scale", "R"), ("softcap", "R")], "VS", "V"),
    "attention_part": ([("head_dim", "N"), ("window", "N"), ("scale", "R"), ("softcap", "R"), ("parts", "N")], "VS", "V"),
    "attention_merge": ([("head_dim", "N"), ("parts", "N"), ("queries", "N")], "V", "V"),
    "gather_rows": ([], "VI", "V"),
    "linear_add": ([("k_begin", "N"), ("k_end", "N")], "VVV", "V"),
    "linear_bias": ([], "VVV", "V"),
    "glu_linear": ([("activation", "N")], "VVV", "V"),
    "norm_linear": ([("eps", "R"), ("offset", "R")], "VVV", "V"),
    "norm_linear_bias": ([("eps", "R"), ("offset", "R")], "VVVV", "V"),
    "norm_glu_linear": ([("eps", "R"), ("offset", "R"), ("activation", "N")], "VVVV", "V"),
    "norm_rope": ([("head_dim", "N"), ("eps", "R"), ("offset", "R")], "VVV", "V"),
    "norm_add": ([("eps", "R"), ("offset", "R")], "VVV", "V"),
    "rope_kv_append": ([("head_dim", "N")], "VVVS", "S"),
    "norm_rope_kv_append": ([("head_dim", "N"), ("eps", "R"), ("offset", "R")], "VVVVS", "S"),
    "rope_attention": ([("head_dim", "N"), ("window", "N"), ("scale", "R"), ("softcap", "R")], "VVS", "V"),
    "norm_rope_attention": ([("head_dim", "N"), ("window", "N"), ("scale", "R"), ("softcap", "R"), ("eps", "R")], "VVVS", "V"),
}
# Their two inputs have one shape: that of a graph that verifies.
ALIKE = {"add", "glu"}
COQ_SORTS = {"V": "value A", "S": "cache A", "I": "nat -> nat", "N": "nat", "R": "number A"}


# As src/rewrite/proved_rules.cmake looks for them.
THEOREM = re.compile(r"^Theorem ([a-z0-9_]+) : says_[a-z0-9_]+ A\.", re.M)


class NoMeaning(Exception):
    """A rule says something that Values.v or this file knows nothing of."""


class Reader:
    """A pattern: name[attribute=...](...), a variable, or a number."""

    def __init__(self, text):
        self.tokens = re.findall(r"\w+|[\[\]()=,]", text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token=None):
        found = self.peek()
        if token is not None and found != token:
            raise NoMeaning(f"'{token}' expected, found '{found}' in {' '.join(self.tokens)}")
        self.at += 1
        return found

    def term(self):
        name = self.take()
        attributes = {}
        if self.peek() == "[":
            self.take()
            while self.peek() != "]":
                key = self.take()
                self.take("=")
                attributes[key] = self.term()
                if self.peek() == ",":
                    self.take()
            self.take()
        inputs = None
        if self.peek() == "(":
            self.take()
            inputs = []
            while self.peek() != ")":
                inputs.append(self.term())
                if self.peek() == ",":
                    self.take()
            self.take()
        return name, attributes, inputs

    def calls(self):
        found = []
        while self.peek():
            found.append(self.term())
            if self.peek() == ",":
                self.take()
        return found


class Statement:
    def __init__(self):
        self.variables = {}  # name -> sort
        self.premises = []
        self.typed = True  # of the left side: it stands in a graph that verifies, and the right side must be shown to fit
        self.chosen = {}  # text of a call -> the variable that stands for it

    def variable(self, name, sort):
        if self.variables.setdefault(name, sort) != sort:
            raise NoMeaning(f"{name} is both {self.variables[name]} and {sort}")
        return f"v_{name}"

    def choose(self, call, sort, premise):
        """A number of which only `premise` (with @ for it) is known."""
        text = repr(call)
        if text not in self.chosen:
            name = f"chosen{len(self.chosen)}"
            self.chosen[text] = self.variable(name, sort)
            self.premises.append(premise.replace("@", self.chosen[text]))
        return self.chosen[text]

    def number(self, term, sort):
        name, _, inputs = term
        if inputs is None:
            if name.isdigit():
                if sort == "R" and name not in ("0", "1"):
                    raise NoMeaning(f"the number {name} has no meaning yet: give it one")
                return name if sort == "N" else {"0": "(zero A)", "1": "(one A)"}[name]
            return self.variable(name, sort)
        if name == "cols":
            return f"(width A {self.value(inputs[0], 'V')})"
        if name == "heads_of_kv_head":
            return f"(width A {self.value(inputs[0], 'V')} / cache_width A {self.value(inputs[1], 'S')})"
        if name == "half":
            return self.choose(term, "N", f"@ <= width A {self.value(inputs[0], 'V')}")
        if name == "half_of_heads":
            return self.choose(term, "N", f"@ <= width A {self.value(inputs[1], 'V')}")
        if name == "middle":
            return self.choose(term, "N", f"{self.number(inputs[0], 'N')} <= @ <= {self.number(inputs[1], 'N')}")
        if name == "product":
            return f"(mul A {self.number(inputs[0], 'R')} {self.number(inputs[1], 'R')})"
        if name == "over_square":
            a, b = self.number(inputs[0], "R"), self.number(inputs[1], "R")
            return self.choose(term, "R", f"mul A (mul A {b} {b}) @ = {a}")
        raise NoMeaning(f"the function '{name}' has no meaning yet: give it one")

    def value(self, term, sort):
        name, attributes, inputs = term
        if inputs is None:
            return self.variable(name, sort)
        if name == "plus":
            return f"(fun_plus A {self.value(inputs[0], 'V')} {self.number(inputs[1], 'R')})"
        if name not in OPERATORS:
            raise NoMeaning(f"the operator '{name}' has no meaning in Values.v: give it one")
        names, sorts, result = OPERATORS[name]
        if result != sort or sorted(attributes) != sorted(n for n, _ in names) or len(inputs) != len(sorts):
            raise NoMeaning(f"'{name}' with other attributes or inputs than Values.v has")
        values = [self.value(i, s) for i, s in zip(inputs, sorts)]
        if name in ALIKE and self.typed:
            self.premises.append(f"alike A {values[0]} {values[1]}")
        if name == "attention" and self.typed:
            self.premises.append(f"fits_cache A {self.number(attributes['head_dim'], 'N')} {values[0]} {values[1]}")
        parts = [self.number(attributes[n], s) for n, s in names] + values
        return f"(op_{name} A {' '.join(parts)})"

    def condition(self, term):
        name, _, inputs = term
        if name == "whole_row":
            return f"{self.number(inputs[0], 'N')} = width A {self.value(inputs[1], 'V')}"
        if name in ("zero", "one"):
            return f"{self.number(inputs[0], 'R')} = {name} A"
        if name == "positive":
            return f"positive A {self.number(inputs[0], 'R')}"
        if name in ("nonzero", "stored_f32", "power_of_two"):
            return None  # of rounding and of what is worth while; over the reals the rule holds without
        raise NoMeaning(f"the condition '{name}' has no meaning yet: give it one")


def joined(literals):
    return "".join(re.findall(r'"([^"]*)"', literals))


def statement_of(left, right, conditions):
    s = Statement()
    a, b = Reader(left).term(), Reader(right).term()
    if a[0] not in OPERATORS:
        raise NoMeaning(f"the operator '{a[0]}' has no meaning in Values.v: give it one")
    sort = OPERATORS[a[0]][2]
    first = s.value(a, sort)
    s.typed = False
    equation = (first, s.value(b, sort))
    premises = [p for p in map(s.condition, Reader(conditions).calls()) if p] + s.premises
    variables = " ".join(f"(v_{n} : {COQ_SORTS[t]})" for n, t in s.variables.items())
    claim = f"same A {equation[0]}\n    {equation[1]}" if sort == "V" else f"{equation[0]} =\n    {equation[1]}"
    return f"  forall {variables},\n    " + "".join(f"{p} ->\n    " for p in premises) + claim


def rules_of(paths):
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        rules = RULE.findall(text)
        if len(rules) != text.count("PLOW_RULE("):
            raise SystemExit(f"statements.py: {path}: {text.count('PLOW_RULE(')} rules, {len(rules)} of them understood")
        yield from rules


def theorems_of(sound):
    return set(THEOREM.findall(pathlib.Path(sound).read_text(encoding="utf-8")))


def print_table(paths, sound):
    rules, theorems = list(rules_of(paths)), theorems_of(sound)
    print("(* Made by statements.py: the rules by name, and left side, right side and conditions of those that are proved. *)")
    print("let names = [" + "; ".join(f'"{rule[1]}"' for rule in rules) + "]")
    print("let proved = [")
    for _, name, *texts in rules:
        if name in theorems:
            print("  " + ", ".join(f'"{t}"' for t in [name, *map(joined, texts)]) + ";")
    print("]")


def print_proved(paths, sound):
    theorems = theorems_of(sound)
    names = [rule[1] for rule in rules_of(paths)]
    proved = [n for n in names if n in theorems]
    for name in names:
        if name not in theorems:
            print(f"statements.py: the rule {name} has no theorem and is off", file=sys.stderr)
    print("(* Made by statements.py from src/rewrite/rules/*.def and Sound.v. *)")
    print("From Plow Require Import Values Statements Sound.\n")
    print("Definition every_proved_rule (A : numbers) : Prop :=\n  " + " /\\\n  ".join(f"says_{n} A" for n in proved) + ".\n")
    proof = "".join(f"(conj (Sound.{n} A)\n   " for n in proved[:-1]) + f"(Sound.{proved[-1]} A)" + ")" * (len(proved) - 1)
    print(f"Theorem every_rule_holds : forall A, every_proved_rule A.\nProof. intro A. exact\n  {proof}.\nQed.")


def print_statements(paths):
    print("(* Made by statements.py from src/rewrite/rules/*.def. *)")
    print("From Coq Require Import Arith.\nFrom Plow Require Import Values.\n\nSection Statements.\nVariable A : numbers.\n")
    for _, name, left, right, conditions in rules_of(paths):
        try:
            claim = statement_of(joined(left), joined(right), joined(conditions))
            print(f"Definition says_{name} : Prop :=\n{claim}.\n")
        except NoMeaning as problem:
            print(f"statements.py: the rule {name} has no statement: {problem}", file=sys.stderr)
    print("End Statements.")


def main():
    arguments = sys.argv[1:]
    if "--proved" in arguments:
        print_proved(arguments[: arguments.index("--proved")], arguments[-1])
    elif "--table" in arguments:
        print_table(arguments[: arguments.index("--table")], arguments[-1])
    else:
        print_statements(arguments)


if __name__ == "__main__":
    main()
