#!/usr/bin/env python3
"""Writes src/text/tokenizer/unicode_tables.inc: where the Unicode versions inside the library `tokenizers` 0.23.3 differ from
those of Debian 12's Oniguruma (14.0) and utf8proc (15.0).

    pip install --target DIR16 unicodedata2==16.0.0
    pip install --target DIR17 unicodedata2==17.0.0
    python3.11 tools/make_unicode_tables.py DIR16 DIR17 > src/text/tokenizer/unicode_tables.inc

Needs Python 3.11 (its unicodedata is 14.0) and Perl 5.36 (ages up to 14.0), both Debian 12's. `tokenizers` has: Oniguruma
and the regex crate with 16.0, the Rust standard library with 17.0, unicode-normalization-alignments with 9.0,
unicode_categories with 8.0. Developers run this; the build does not.
"""
import json
import subprocess
import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]

# Run under each unicodedata2 in a process of its own: category, combining class, decomposition, name.
DUMP = """
import sys, json
sys.path.insert(0, sys.argv[1])
import unicodedata2 as u
assert u.unidata_version == sys.argv[2], u.unidata_version
json.dump([[u.category(chr(c)), u.combining(chr(c)), u.decomposition(chr(c)), u.name(chr(c), "")]
           for c in range(0x110000)], sys.stdout)
"""

AGES = r"""
use Unicode::UCD qw(prop_invmap);
my ($starts, $ages) = prop_invmap("Age");
print "$starts->[$_] $ages->[$_]\n" for 0 .. $#$starts;
"""


def unicode_data(folder, version):
    return json.loads(subprocess.run([sys.executable, "-c", DUMP, folder, version], check=True, capture_output=True).stdout)


def ages():
    """The version that assigned each code point, up to 14.0; 99 for none."""
    result = [99.0] * 0x110000
    rows = [line.split() for line in subprocess.run(["perl", "-e", AGES], check=True, capture_output=True,
                                                    text=True).stdout.splitlines()]
    for i, (start, age) in enumerate(rows):
        end = int(rows[i + 1][0]) if i + 1 < len(rows) else 0x110000
        if age.startswith("V") or age[0].isdigit():
            value = float(age.lstrip("V").replace("_", "."))
            result[int(start):min(end, 0x110000)] = [value] * (min(end, 0x110000) - int(start))
    return result


def ranges(code_points, key=lambda c: None):
    out = []
    for c in sorted(code_points):
        if out and out[-1][1] == c - 1 and out[-1][2] == key(c):
            out[-1][1] = c
        else:
            out.append([c, c, key(c)])
    return out


def table(comment, kind, name, rows):
    print("\n// " + comment)
    print("constexpr %s %s[] = {" % (kind, name))
    line = "   "
    for row in rows:
        item = " {%s}," % ", ".join(row)
        if len(line) + len(item) > 108:
            print(line)
            line = "   "
        line += item
    print(line + "\n};")


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    data16, data17 = unicode_data(sys.argv[1], "16.0.0"), unicode_data(sys.argv[2], "17.0.0")
    age = ages()
    hexa = lambda c: "0x%x" % c
    pair = lambda rows: [(hexa(a), hexa(b)) for a, b, _ in rows]

    print("// Made by tools/make_unicode_tables.py from the Unicode Character Database; do not edit.")
    new16 = [c for c in CODE_POINTS if unicodedata.category(chr(c)) == "Cn" and data16[c][0] != "Cn"]
    han = lambda c: data16[c][3].startswith("CJK UNIFIED IDEOGRAPH")
    table("Assigned by Unicode 15.0, 15.1 or 16.0: general category, Han or not.", "NewCodePoints", "kNewCodePoints",
          [(hexa(a), hexa(b), '"%s"' % k[0], "true" if k[1] else "false")
           for a, b, k in ranges(new16, lambda c: (data16[c][0], han(c)))])

    numbers = [c for c in CODE_POINTS if data17[c][0][0] == "N" and unicodedata.category(chr(c))[0] != "N"]
    table("Numbers (Nd, Nl, No) of Unicode 17.0 that 14.0 does not have.", "CodePointRange", "kNewNumbers",
          pair(ranges(numbers)))

    small = {data17[c][3]: c for c in CODE_POINTS if data17[c][0] == "Ll"}
    lower = {c: small[data17[c][3].replace("CAPITAL", "SMALL")] - c for c in CODE_POINTS
             if data17[c][0] == "Lu" and unicodedata.category(chr(c)) == "Cn"}
    table("Capitals of Unicode 17.0 that 14.0 does not have: distance to the small letter.", "LowercaseRange",
          "kNewCapitals", [(hexa(a), hexa(b), str(d)) for a, b, d in ranges(lower, lower.get)])

    marks = [c for c in CODE_POINTS if age[c] > 9.0 and data16[c][0] != "Cn" and
             (data16[c][0][0] == "M" or data16[c][1] or data16[c][2])]
    table("Marks, and code points that normalization moves or takes apart, assigned after Unicode 9.0.",
          "CodePointRange", "kNormalizedSince9", pair(ranges(marks)))

    classes = [c for c in CODE_POINTS if age[c] > 8.0 and (data16[c][0] in ("Mn", "Cf") or data16[c][0][0] == "P")]
    table("Nonspacing marks, punctuation and format characters assigned after Unicode 8.0.", "CodePointRange",
          "kClassifiedSince8", pair(ranges(classes)))


if __name__ == "__main__":
    main()
