#!/usr/bin/env python3
"""What `egglog` says of the rewriter's rules on random graphs, for src/rewrite/egglog_test.cpp.

    egglog_reference.py --write    fills src/rewrite/testdata/egglog_reference.txt
    egglog_reference.py --check    makes it again and compares; exits 77 (skipped) when egglog is not installed

Needs `pip install egglog`. The rules are read from src/rewrite/rules/*.def and written down for egglog: patterns as they
are, shapes as functions over terms. The graphs are random; so that their nodes have something to be equal to, half of
them are instances of the two sides of rules.

A graph in the file:  graph SEED / g KIND (a given value) or o OPERATOR ATTRIBUTE-BITS INPUTS, one line a node / classes:
for each node the first node that is equal to it.
"""
import os
import random
import re
import struct
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
RULES = os.path.join(ROOT, "src/rewrite/rules")
REFERENCE = os.path.join(ROOT, "src/rewrite/testdata/egglog_reference.txt")
GRAPHS = 300
COLS, HEAD = 1024, 512  # two heads; a row that can be split once
NODES = 16              # operators of a graph, or a few more
MAX_ADDS = 4            # sums in all orders grow fast
RUNS = 30               # iterations of egglog; a graph that needs more is left out

# Kinds of values: rows of tokens and samples, of all columns (T S) and of one head (t s); matrices, gains of a row and of a
# head, the rows that are sampled, a cache's state, a cache. P and Q are attention's parts of T and S.
GIVEN = ["T", "T", "S", "W", "W", "G", "H", "R", "K", "t", "s"]
COLUMNS = {"T": COLS, "S": COLS, "t": HEAD, "s": HEAD, "W": COLS, "G": COLS, "H": HEAD, "K": COLS, "C": COLS, "R": 1}
# Operator -> kinds of inputs -> kind of the value. Attributes by name, in order, in OPERATORS.
SIGNATURES = {
    "linear": [("TW", "T"), ("SW", "S")],
    "bias_add": [("TG", "T"), ("SG", "S")],
    "add": [("TT", "T"), ("SS", "S")],
    "scale": [("T", "T"), ("S", "S")],
    "soft_cap": [("T", "T"), ("S", "S")],
    "rms_norm": [("TG", "T"), ("SG", "S"), ("TH", "T"), ("SH", "S")],
    "glu": [("TT", "T"), ("SS", "S")],
    "rope": [("Tt", "T"), ("Ss", "S")],
    "gather_rows": [("TR", "S"), ("tR", "s")],
    "kv_append": [("TTK", "C")],
    "attention": [("TC", "T"), ("SC", "S")],
    "linear_add": [("TWT", "T"), ("SWS", "S")],
    "linear_part": [("TW", "T"), ("SW", "S")],
    "norm_linear": [("TGW", "T"), ("SGW", "S")],
    "glu_linear": [("TWW", "T"), ("SWW", "S")],
    "norm_glu_linear": [("TGWW", "T"), ("SGWW", "S")],
    "linear_bias": [("TWG", "T"), ("SWG", "S")],
    "norm_linear_bias": [("TGWG", "T"), ("SGWG", "S")],
    "norm_rope": [("THt", "T"), ("SHs", "S")],
    "rope_kv_append": [("TTtK", "C")],
    "norm_rope_kv_append": [("THTtK", "C")],
    "rope_attention": [("TtC", "T"), ("SsC", "S")],
    "norm_rope_attention": [("THtC", "T"), ("SHsC", "S")],
    "norm_add": [("TGT", "T"), ("SGS", "S")],
    "attention_part": [("TC", "P"), ("SC", "Q")],
    "attention_merge": [("P", "T"), ("Q", "S")],
}
# Attribute -> values that random nodes take. Floats are powers of two or their sums, so that products are exact.
ATTRIBUTES = {"eps": [0.0009765625, 0.25], "offset": [0.0, 1.0], "group": None, "factor": [1.0, 2.0, 0.5, 3.0], "cap": [2.0],
              "activation": [0, 1], "head_dim": [HEAD], "window": [0], "scale": [0.25, 0.75], "softcap": [0.0],
              "k_begin": [0], "k_end": [COLS], "parts": [2], "queries": [1]}
FLOATS = {"eps", "offset", "factor", "cap", "scale", "softcap"}


class Term:
    """An operator of a pattern with its attributes (name -> text) and inputs, or a variable (a name)."""

    def __init__(self, op, attributes, inputs):
        self.op, self.attributes, self.inputs = op, attributes, inputs


class Reader:
    def __init__(self, text):
        self.rest = text

    def take(self, pattern):
        match = re.match(pattern, self.rest)
        if not match:
            raise ValueError("pattern: %s must come at %r" % (pattern, self.rest))
        self.rest = self.rest[match.end():]
        return match.group(0)

    def pattern(self):
        name = self.take(r"\w+")
        attributes = {}
        if self.rest.startswith("["):
            self.take(r"\[")
            while not self.rest.startswith("]"):
                key = self.take(r" ?\w+=").strip(" =")
                attributes[key] = self.take(r"\w+\([^)]*\)|-?[\w.]+")
            self.take(r"\]")
        if not self.rest.startswith("("):
            return name
        self.take(r"\(")
        inputs = []
        while not self.rest.startswith(")"):
            if inputs:
                self.take(", ")
            inputs.append(self.pattern())
        self.take(r"\)")
        return Term(name, attributes, inputs)


def calls(text):
    return [(name, arguments.split(", ")) for name, arguments in re.findall(r"(\w+)\(([^)]*)\)", text)]


def read_rules():
    rules = []
    for file in sorted(os.listdir(RULES)):
        with open(os.path.join(RULES, file), encoding="utf-8") as f:
            text = f.read()
        for match in re.finditer(r'PLOW_RULE\(\w+, (\w+), \w+,\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",', text):
            name, left, right, conditions = match.groups()
            rules.append((name, Reader(left).pattern(), Reader(right).pattern(), calls(conditions)))
    return rules


# --- egglog's text ---

class EggRule:
    """One rule: facts that must hold beside the left side, and what the right side is."""

    def __init__(self, name, left, right, conditions):
        self.facts, self.fresh = [], 0
        self.floats = set()
        left_text = self.expression(left, left=True)
        for condition, arguments in conditions:
            self.condition(condition, arguments)
        right_text = self.expression(right, left=False)
        self.text = "(rule ((= root %s) %s) ((union root %s)))" % (left_text, " ".join(self.facts), right_text)

    def expression(self, term, left):
        if isinstance(term, str):
            return term
        if term.op == "plus":
            return "(Plus %s %s)" % (term.inputs[0], term.inputs[1])
        parts = []
        for name, text in term.attributes.items():
            if left and name in FLOATS:
                self.floats.add(text)
            parts.append(self.attribute(name, text))
        parts += [self.expression(input, left) for input in term.inputs]
        return "(op_%s %s)" % (term.op, " ".join(parts))

    def attribute(self, name, text):
        called = calls(text)
        if called:
            return self.function(*called[0])
        if re.fullmatch(r"-?[\d.]+", text):
            return "%r" % float(text) if name in FLOATS else text
        return text

    def bind(self, expression):
        name = "v%d" % self.fresh
        self.fresh += 1
        self.facts.append("(= %s %s)" % (name, expression))
        return name

    def function(self, name, arguments):
        a = arguments[0]
        if name == "product":
            return self.bind("(* %s %s)" % (a, arguments[1]))
        if name == "over_square":
            return self.bind("(/ %s (* %s %s))" % (a, arguments[1], arguments[1]))
        if name == "cols":
            return self.bind("(cols %s)" % a)
        if name == "half":
            c = self.bind("(cols %s)" % a)
            self.facts.append("(>= %s 1024)" % c)
            return self.bind("(* 32 (/ (/ %s 2) 32))" % c)
        if name == "middle":
            self.facts.append("(>= (- %s %s) 1024)" % (arguments[1], a))
            return self.bind("(* 32 (/ (/ (+ %s %s) 2) 32))" % (a, arguments[1]))
        if name == "heads_of_kv_head":
            return self.bind("(/ (cols %s) (cols %s))" % (a, arguments[1]))
        if name == "half_of_heads":
            heads = self.bind("(/ (cols %s) %s)" % (arguments[1], a))
            self.facts.append("(>= %s 2)" % heads)
            return self.bind("(* (/ %s 2) %s)" % (heads, a))
        raise ValueError("no function " + name)

    def condition(self, name, arguments):
        a = arguments[0]
        self.facts.append({
            "whole_row": lambda: "(= %s (cols %s))" % (a, arguments[-1]),
            "nonzero": lambda: "(!= %s 0.0)" % a,
            "zero": lambda: "(= %s 0.0)" % a,
            "one": lambda: "(= %s 1.0)" % a,
            "positive": lambda: "(> %s 0.0)" % a,
            "power_of_two": lambda: "(pow2 %s)" % a,
            "stored_f32": lambda: "(stored %s)" % a,
        }[name]())


def prelude(rules):
    operators = attributes_of_operators(rules)
    lines = ["(datatype E (Given i64) (Plus E f64)"]
    for op, names in operators.items():
        sorts = ["f64" if name in FLOATS else "i64" for name in names] + ["E"] * len(SIGNATURES[op][0][0])
        lines.append("(op_%s %s)" % (op, " ".join(sorts)))
    lines.append(")")
    lines += ["(function cols (E) i64 :merge (min old new))", "(function label (E) i64 :merge (min old new))",
              "(relation pow2 (f64))", "(relation stored (E))"]
    for e in range(-64, 64):
        lines.append("(pow2 %r)" % 2.0 ** e)
    # All matrices are square, so every value has the columns of its first input; a cache those of its state. (Not so
    # attention's parts, but no rule looks at their columns.)
    for op, names in operators.items():
        inputs = ["x%d" % i for i in range(len(SIGNATURES[op][0][0]))]
        term = "(op_%s %s)" % (op, " ".join(["a%d" % i for i in range(len(names))] + inputs))
        lines.append("(rule ((= r %s) (= c (cols x0))) ((set (cols r) c)))" % term)
    lines += [EggRule(*rule).text for rule in rules]
    return "\n".join(lines)


def attributes_of_operators(rules):
    """From the rules themselves, which name all attributes in order."""
    found = {}

    def walk(term):
        if isinstance(term, Term) and term.op != "plus":
            found[term.op] = list(term.attributes)
            for input in term.inputs:
                walk(input)
    for _, left, right, _ in rules:
        walk(left)
        walk(right)
    missing = set(SIGNATURES) ^ set(found)
    if missing:
        raise ValueError("operators that only SIGNATURES or only the rules have: %s" % sorted(missing))
    return dict(sorted(found.items()))


# --- random graphs ---

class Graph:
    def __init__(self, rng, rules):
        self.rng, self.rules = rng, rules
        self.operators = attributes_of_operators(rules)
        self.kinds = list(GIVEN)
        self.nodes = [None] * len(GIVEN)  # None, or (op, attributes by name, inputs)
        self.adds = 0

    def of_kind(self, kind):
        return [i for i, k in enumerate(self.kinds) if k == kind]

    def push(self, op, attributes, inputs):
        kinds = "".join(self.kinds[i] for i in inputs)
        result = [out for wanted, out in SIGNATURES[op] if wanted == kinds]
        if not result or (op == "add" and self.adds >= MAX_ADDS):
            return None
        if op == "rms_norm" and attributes["group"] != COLUMNS[kinds[1]]:
            return None
        node = (op, attributes, tuple(inputs))
        if node in self.nodes:
            return self.nodes.index(node)
        self.adds += op in ("add", "linear_add", "norm_add")
        self.nodes.append(node)
        self.kinds.append(result[0])
        return len(self.nodes) - 1

    def draw(self, name):
        return self.rng.choice(ATTRIBUTES[name]) if name != "group" else self.rng.choice([COLS, HEAD])

    def add_random(self):
        op = self.rng.choice(list(self.operators))
        wanted, _ = self.rng.choice(SIGNATURES[op])
        choices = [self.of_kind(kind) for kind in wanted]
        if all(choices):
            attributes = {name: self.draw(name) for name in self.operators[op]}
            self.push(op, attributes, [self.rng.choice(c) for c in choices])

    def add_sides(self):
        """Both sides of a rule over the same nodes, so far as its attributes are plain and they fit."""
        _, left, right, _ = self.rng.choice(self.rules)
        for _ in range(200):
            if self.try_sides(left, right):
                return

    def try_sides(self, left, right):
        values, attributes = {}, {}

        def build(term):
            if isinstance(term, str):
                if term not in values:
                    values[term] = self.rng.randrange(len(self.nodes))
                return values[term]
            if term.op == "plus":
                return None
            chosen = {}
            for name, text in term.attributes.items():
                if calls(text):
                    return None
                if re.fullmatch(r"-?[\d.]+", text):
                    chosen[name] = float(text) if name in FLOATS else int(text)
                else:
                    chosen[name] = attributes.setdefault(text, self.draw(name))
            inputs = []
            for input in term.inputs:
                inputs.append(build(input))
                if inputs[-1] is None:
                    return None
            return self.push(term.op, chosen, inputs)
        before = (len(self.nodes), self.adds)
        if build(left) is None:
            # Nothing of a side that does not fit stays.
            del self.nodes[before[0]:], self.kinds[before[0]:]
            self.adds = before[1]
            return False
        build(right)
        return True


def random_graph(seed, rules):
    rng = random.Random(seed)
    graph = Graph(rng, rules)
    graph.push("kv_append", {"head_dim": HEAD}, [0, 1, GIVEN.index("K")])
    while len(graph.nodes) < len(GIVEN) + NODES:
        graph.add_random() if rng.random() < 0.2 else graph.add_sides()
    return graph


# --- egglog ---

def literal(name, value):
    return repr(float(value)) if name in FLOATS else str(value)


def classes_by_egglog(graph, start, bindings):
    egraph = bindings.EGraph()
    lines = []
    for i, node in enumerate(graph.nodes):
        if node is None:
            lines += ["(let $n%d (Given %d))" % (i, i), "(set (cols $n%d) %d)" % (i, COLUMNS[graph.kinds[i]])]
            if graph.kinds[i] in "GH":
                lines.append("(stored $n%d)" % i)
        else:
            op, attributes, inputs = node
            parts = [literal(name, value) for name, value in attributes.items()] + ["$n%d" % k for k in inputs]
            lines.append("(let $n%d (op_%s %s))" % (i, op, " ".join(parts)))
        lines.append("(set (label $n%d) %d)" % (i, i))
    lines.append("(run %d)" % RUNS)
    egraph.run_program(*egraph.parse_program(start + "\n".join(lines)))
    last = egraph.run_program(*egraph.parse_program("(run 1)"))
    if any(out.report.updated for out in last):
        return None
    labels = []
    for i in range(len(graph.nodes)):
        out = egraph.run_program(*egraph.parse_program("(extract (label $n%d))" % i))
        labels.append(int(extracted(out)))
    return labels


def extracted(outputs):
    return [str(out) for out in outputs if type(out).__name__ == "ExtractBest"][0]


def bits(name, value):
    return struct.unpack("<I", struct.pack("<f", value))[0] if name in FLOATS else value


def reference(bindings):
    rules = read_rules()
    start = prelude(rules) + "\n"
    lines = ["rules " + " ".join(sorted(rule[0] for rule in rules))]
    made, seed, equal = 0, 0, 0
    while made < GRAPHS:
        seed += 1
        graph = random_graph(seed, rules)
        labels = classes_by_egglog(graph, start, bindings)
        if labels is None:
            continue
        lines.append("graph %d" % seed)
        for i, node in enumerate(graph.nodes):
            if node is None:
                lines.append("g " + graph.kinds[i])
            else:
                op, attributes, inputs = node
                words = [bits(name, value) for name, value in attributes.items()] + list(inputs)
                lines.append("o %s %s" % (op, " ".join(map(str, words))))
        lines.append("classes " + " ".join(map(str, labels)))
        made += 1
        equal += sum(label != i for i, label in enumerate(labels))
    print("%d graphs of %d tried, %d nodes that are equal to an earlier one" % (made, seed, equal), file=sys.stderr)
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] not in (["--write"], ["--check"]):
        print(__doc__)
        return 2
    try:
        from egglog import bindings
    except ImportError:
        print("skipped: the Python package egglog is not installed (pip install egglog)")
        return 77
    text = reference(bindings)
    if sys.argv[1] == "--write":
        with open(REFERENCE, "w", encoding="utf-8") as f:
            f.write(text)
        return 0
    with open(REFERENCE, encoding="utf-8") as f:
        if f.read() == text:
            return 0
    print("egglog says otherwise than src/rewrite/testdata/egglog_reference.txt; write it again and look at what changed")
    return 1


if __name__ == "__main__":
    sys.exit(main())
