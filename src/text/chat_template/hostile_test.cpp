// Templates that are wrong, that refuse, or that mean harm: one clear error each, soon and without exhausting
// the machine.
#include "text/chat_template/chat_template.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace plow {
namespace {

namespace json = boost::json;

struct BadTemplate {
  std::string source;
  std::string message;  // a part of it
};

ChatInput plain_input() {
  ChatInput input;
  input.messages = json::parse(R"([{"role": "user", "content": "Hello"}])");
  return input;
}

std::string error_of(std::string_view source, const ChatInput& input, const RenderLimits& limits = {}) {
  const auto chat_template = ChatTemplate::compile(source);
  if (!chat_template.ok()) return chat_template.error().message;
  const auto rendered = chat_template->render(input, limits);
  return rendered.ok() ? "renders: " + rendered->substr(0, 200) : rendered.error().message;
}

void expect_errors(const std::vector<BadTemplate>& bad, const RenderLimits& limits = {}) {
  for (const BadTemplate& one : bad) {
    const std::string message = error_of(one.source, plain_input(), limits);
    EXPECT_TRUE(message.starts_with("chat template, line ")) << one.source.substr(0, 200) << "\n" << message;
    EXPECT_NE(message.find(one.message), std::string::npos) << one.source.substr(0, 200) << "\n" << message;
    EXPECT_LT(message.size(), 500u) << one.source.substr(0, 200);
  }
}

std::string repeated(std::string_view what, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += what;
  return result;
}

TEST(HostileTemplate, wrong_syntax_is_refused_when_compiling) {
  expect_errors({
      {"{% if x %}", "'if' is not closed: the template ends before 'endif'"},
      {"{% for x in y %}", "'for' is not closed"},
      {"{% macro f() %}{% if x %}{% endif %}", "'macro' is not closed"},
      {"{% set x %}", "'set' is not closed"},
      {"{{ x", "a tag is not closed: '}}' is missing"},
      {"{% if x", "a tag is not closed: '%}' is missing"},
      {"{# comment", "a comment is not closed"},
      {"{% raw %} {{ x }}", "a raw block is not closed"},
      {"{{ 'abc }}", "a string is not closed"},
      {"{{ (1 + 2 }}", "unexpected '}', expected ')'"},
      {"{{ 1 + }}", "an expression is missing, got '}}'"},
      {"{{ }}", "an expression is missing"},
      {"{{ a b }}", "expected '}}', got 'b'"},
      {"{{ a ? b }}", "unexpected character '?'"},
      {"{{ 1a }}", "got 'a'"},
      {"{{ \xc2\xa7 }}", "unexpected character '\xc2\xa7'"},
      {"{% endif %}", "unknown tag, got 'endif'"},
      {"{% if x %}{% endfor %}{% endif %}", "unknown tag inside 'if', got 'endfor'"},
      {"{% nonsense %}", "unknown tag, got 'nonsense'"},
      {"{% do x.append(1) %}", "unknown tag, got 'do'"},
      {"{% include 'other' %}",
       "the tag 'include' is not supported: a chat template cannot load other templates"},
      {"{% import 'other' as o %}", "'import' is not supported"},
      {"{% from 'other' import x %}", "'from' is not supported"},
      {"{% extends 'base' %}", "'extends' is not supported"},
      {"{% block b %}{% endblock %}", "'block' is not supported"},
      {"{% autoescape true %}{% endautoescape %}", "'autoescape' is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "recursive loops are not supported"},
      {"{% break %}", "'break' is outside of a loop"},
      {"{% for x in y %}{% macro f() %}{% continue %}{% endmacro %}{% endfor %}",
       "'continue' is outside of a loop"},
      {"{% for loop in y %}{% endfor %}", "'loop' cannot be assigned"},
      {"{% set 1 = 2 %}", "only names"},
      {"{% set a.b.c = 2 %}", "expected"},
      {"{% set none = 2 %}", "only names"},
      {"{% macro true() %}{% endmacro %}", "'true' cannot be assigned"},
      {"{% macro f(a=1, b) %}{% endmacro %}", "without a default follows"},
      {"{% call f %}{% endcall %}", "'call' needs a call"},
      {"{{ f(a=1, 2) }}", "wrong order"},
      {"{{ 1 is odd is even }}", "tests cannot be chained"},
      {"{{ x|nosuch }}", "there is no filter 'nosuch'"},
      {"{{ x is nosuch }}", "there is no test 'nosuch'"},
      {"{{ 99999999999999999999 }}", "beyond 64 bits"},
      {"{{ '\\ud800' }}", "is not a character"},
      {"{{ '\\xg1' }}", "are not digits"},
      {"{{ '\\u12' }}", "truncated"},
      {"{{ '\\N{BULLET}' }}", "names a character"},
      {"{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}", "nested too deeply"},
      {"{{ " + repeated("[", 100000) + repeated("]", 100000) + " }}", "nested too deeply"},
      {"{{ " + repeated("not ", 100000) + "1 }}", "nested too deeply"},
      {"{{ " + repeated("-", 100000) + "1 }}", "nested too deeply"},
      {"{{ x" + repeated("|f(x", 100000) + repeated(")", 100000) + " }}", "nested too deeply"},
      {"{{ " + repeated("{1:", 100000) + "1" + repeated("}", 100000) + " }}", "nested too deeply"},
      {"{{ " + repeated("1 if 1 else ", 80000) + "1 }}", "nested too deeply"},
      {"{{ x" + repeated("(", 9000) + repeated(")", 9000) + " }}", "nested too deeply"},
      {"{{ x" + repeated("[x", 9000) + repeated("]", 9000) + " }}", "nested too deeply"},
      {repeated("{% if x %}", 100000), "nested too deeply"},
      {"{{ 1" + repeated(" + 1", 100000) + " }}", "too many parts"},
      {"{{ x" + repeated(".a", 100000) + " }}", "too many parts"},
      {"{{ x" + repeated("|upper", 100000) + " }}", "too many parts"},
  });
}

TEST(HostileTemplate, what_fails_while_rendering_is_said_once_and_clearly) {
  expect_errors({
      {"{{ raise_exception('Roles must alternate') }}",
       "the template refuses this conversation: Roles must alternate"},
      {"{{ missing.x }}", "'missing' is undefined"},
      {"{{ messages[0].nothing.x }}", "'dict object' has no attribute 'nothing'"},
      {"{{ messages[7].content }}", "list object has no element 7"},
      {"{{ none.x.y }}", "'None' has no attribute 'x'"},
      {"{{ missing() }}", "'missing' is undefined"},
      {"{{ 'a'() }}", "'str' object is not callable"},
      {"{{ 'a'.nosuch() }}", "'str object' has no attribute 'nosuch'"},
      {"{{ 1 / 0 }}", "division by zero"},
      {"{{ 1 % 0 }}", "by zero"},
      {"{{ 'a' + 1 }}", "can only concatenate str (not \"int\") to str"},
      {"{{ 1 + 'a' }}", "unsupported operand type(s) for +: 'int' and 'str'"},
      {"{{ 1 < 'a' }}", "'<' not supported between instances of 'int' and 'str'"},
      {"{{ [1, 'a']|sort }}", "not supported between instances"},
      {"{% for x in 5 %}{% endfor %}", "'int' object is not iterable"},
      {"{% for a, b in [1] %}{% endfor %}", "'int' object is not iterable"},
      {"{% for a, b in [[1]] %}{% endfor %}", "not enough values to unpack (expected 2, got 1)"},
      {"{% set x = 1 %}{% set x.y = 2 %}", "cannot assign attribute on non-namespace object"},
      {"{% set ns = namespace() %}{% set ns._x = 1 %}", "underscore"},
      {"{% set l = [] %}{{ l.append(1) }}", "cannot change the values"},
      {"{{ messages[0].update({'a': 1}) }}", "cannot change the values"},
      {"{{ missing|tojson }}", "Object of type Undefined is not JSON serializable"},
      {"{{ range(3)|tojson }}", "Object of type range is not JSON serializable"},
      {"{{ {(1, 2): 3}|tojson }}", "keys must be str"},
      {"{{ 'a'|indent('x', 1, 2, 3) }}", "indent() takes at most 3 arguments (4 given)"},
      {"{{ 'a'|indent(nosuch=1) }}", "unexpected keyword argument 'nosuch'"},
      {"{{ 'a'|replace('b') }}", "is missing the argument 'new'"},
      {"{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "takes not more than 1 argument"},
      {"{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", "takes no keyword argument 'b'"},
      {"{{ ['a']|map('nosuch')|list }}", "there is no filter 'nosuch'"},
      {"{{ ['a']|select('nosuch')|list }}", "there is no test 'nosuch'"},
      {"{{ 'abc'.split('') }}", "empty separator"},
      {"{{ {[1]: 2} }}", "unhashable type: 'list'"},
      {"{{ strftime_now('%Y') }}", "asks for the time"},
      {"{{ '%d' % 'x' }}", "a real number is required"},
      {"{{ '{' .format(1) }}", "expected '}'"},
      {"{{ ''.__class__.__mro__ }}", "has no attribute '__class__'"},
      {"{{ '{0.__class__.x}'.format('') }}", "has no attribute '__class__'"},
      {"{{ (-8) ** 0.5 }}", "complex"},
      {"{{ 9223372036854775807 + 1 }}", "beyond 64 bits"},
      {"{{ -9223372036854775807 - 2 }}", "beyond 64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "beyond 64 bits"},
      {"{{ (-9223372036854775807 - 1)|abs }}", "beyond 64 bits"},
      {"{{ 2 ** 63 }}", "beyond 64 bits"},
      {"{{ 10 ** 1000000000000 }}", "beyond 64 bits"},
      {"{{ ('1' * 30)|int }}", "beyond 64 bits"},
      {"{{ 1e300|int }}", "beyond 64 bits"},
  });
}

TEST(HostileTemplate, nothing_runs_for_ever_or_fills_the_memory) {
  // Small limits, so that the test is quick; each template would otherwise need far more than any limit.
  RenderLimits limits;
  limits.max_steps = 2'000'000;
  limits.max_memory_bytes = uint64_t{32} << 20;
  limits.max_string_bytes = uint64_t{4} << 20;
  const std::string loops = "{% for a in range(100000) %}{% for b in range(100000) %}";
  expect_errors(
      {
          {loops + "{% endfor %}{% endfor %}", "takes too long"},
          {loops + "x{% endfor %}{% endfor %}", "takes too long"},
          {loops + "{% set x = [a, b] %}{% endfor %}{% endfor %}", "the template"},
          {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "nests too deeply"},
          {"{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
           "nests too deeply"},
          {"{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "nests too deeply"},
          {"{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
           "takes too long"},
          {"{% macro f() %}{% call f() %}{% endcall %}{{ caller }}{% endmacro %}{{ f() }}",
           "nests too deeply"},
          {"{% macro f(a=f()) %}{% endmacro %}{{ f() }}", "nests too deeply"},
          {"{{ 'a' * 1000000000000 }}", "too long"},
          {"{{ 'abcdefgh' * 1000000 * 1000000 }}", "too long"},
          {"{{ [0] * 1000000000000 }}", "the template"},
          {"{{ ([0] * 1000) * 1000000 }}", "too much memory"},
          {"{{ range(1000000000) }}", "a range is too big"},
          {"{{ range(-9223372036854775807, 9223372036854775807) }}", "a range is too big"},
          {"{{ range(9223372036854775807, -9223372036854775807, -1) }}", "a range is too big"},
          {"{% set ns = namespace(s='x') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "too long"},
          {"{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
           "too much memory"},
          {"{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ "
           "ns.l }}",
           "nests too deeply"},
          {"{% set ns = namespace(l=[]) %}{% for i in range(9000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ "
           "ns.l|tojson }}",
           "nests too deeply"},
          {"{% set ns = namespace(a=[], b=[]) %}{% for i in range(9000) %}{% set ns.a = [ns.a] %}{% set ns.b "
           "= [ns.b] %}"
           "{% endfor %}{{ ns.a == ns.b }}",
           "nests too deeply"},
          {"{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}", "nests too deeply"},
          {"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor "
           "%}{{ ns.l|tojson }}",
           "the template"},
          {"{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
           "{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
           "takes too long"},
          {"{{ '%1000000000d' % 1 }}", "too large"},
          {"{{ '%.1000000000f' % 1 }}", "too large"},
          {"{{ '%*d' % (1000000000, 1) }}", "too large"},
          {"{{ '{:1000000000}'.format(1) }}", "too large"},
          {"{{ '{:.1000000000f}'.format(1.0) }}", "too large"},
          {"{{ '{:{}{}{}}'.format(1, 999999, 9, 9) }}", "too large"},
          {"{{ 'a'.center(10000000000) }}", "too long"},
          {"{{ 'a'|indent(10000000000) }}", "too long"},
          {"{{ 'a'.zfill(10000000000) }}", "too long"},
          {"{{ ('a' * 100000).replace('', 'b' * 100000) }}", "too long"},
          {"{{ ('a' * 1000000).join(['b'] * 1000) }}", "too long"},
          {"{{ [1]|batch(100000000, 'x')|list }}", "the template"},
          {"{{ [1]|batch(9223372036854775807, 'x')|list }}", "the template"},
          {"{{ [1]|slice(10000000000)|list }}", "the template"},
          {"{{ [1]|tojson(indent=1000000000) }}", "too large"},
          {"{% for i in range(100000) %}{% call m() %}{% endcall %}{% endfor %}", "'m' is undefined"},
          {"{% macro m() %}{{ caller }}{% endmacro %}{% for a in range(100000) %}{% for b in range(9) %}{% "
           "call m() %}"
           "{% endcall %}{% endfor %}{% endfor %}",
           "the template"},
          {"{{ range(100000)|map('string')|unique|list|length }}", "takes too long"},
          {"{{ dict(range(100000)|batch(2)|list) }}", "takes too long"},
          {"{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{{ s[i] }}{% endfor %}",
           "takes too long"},
          {"{% set s = 'ab' * 1000000 %}{% for i in range(100000) %}{{ s.count('c') }}{% endfor %}",
           "takes too long"},
          {"{{ strftime_now('%c' * 100000) }}", "asks for the time"},
      },
      limits);
}

TEST(HostileTemplate, an_input_of_the_wrong_shape_is_refused) {
  const auto error_with = [](const char* messages, const char* tools, const char* documents) {
    ChatInput input;
    input.messages = json::parse(messages);
    input.tools = json::parse(tools);
    input.documents = json::parse(documents);
    return error_of("{{ messages }}", input);
  };
  EXPECT_EQ(error_with("[]", "null", "null"),
            "chat template: the conversation needs at least one message, in an array");
  EXPECT_EQ(error_with("{}", "null", "null"),
            "chat template: the conversation needs at least one message, in an array");
  EXPECT_EQ(error_with("[1]", "null", "null"),
            "chat template: a message of the conversation is not an object");
  EXPECT_EQ(error_with("[{}]", "5", "null"), "chat template: the tools must be an array");
  EXPECT_EQ(error_with("[{}]", "null", "[1]"), "chat template: the documents must be an array of objects");
  ChatInput input = plain_input();
  input.variables["x"] = "\xff";
  EXPECT_EQ(error_of("{{ x }}", input), "chat template: a string of the conversation is not UTF-8");
  EXPECT_EQ(error_of("\xc3", plain_input()), "chat template: the text is not UTF-8");
  EXPECT_EQ(error_of(std::string(2 << 20, 'a'), plain_input()),
            "chat template: 2097152 bytes are more than the 1048576 that a template may have");
  input = plain_input();
  input.now = LocalTime{2026, 2, 29, 0, 0, 0, 0};
  EXPECT_EQ(error_of("{{ strftime_now('%Y') }}", input),
            "chat template, line 1: the caller's time is not one that a calendar has");
}

// A machine with less memory than the limits allow. The sanitizers' own memory cannot be limited so.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(HostileTemplateDeathTest, too_little_memory_is_an_error_and_no_exception) {
  const auto error_without_memory = [](std::string_view source) {
    const rlimit little{size_t{64} << 20, RLIM_INFINITY};
    if (::setrlimit(RLIMIT_AS, &little) != 0) ::_exit(2);
    std::fputs(error_of(source, plain_input()).c_str(), stderr);
    ::_exit(0);
  };
  const std::string message = "chat template: there is not enough memory for it";
  EXPECT_EXIT(error_without_memory("{% set x = 'x' * 30000000 %}{{ x ~ x ~ x }}"), testing::ExitedWithCode(0),
              message);
  EXPECT_EXIT(error_without_memory(repeated("{{x}}", 200000)), testing::ExitedWithCode(0), message);
}
#endif

}  // namespace
}  // namespace plow
