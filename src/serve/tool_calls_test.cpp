#include "serve/tool_calls.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace plow {
namespace {

using Kind = ToolEvent::Kind;

// Neighbouring pieces of text, and of arguments, put together.
std::vector<ToolEvent> joined(const std::vector<ToolEvent>& events) {
  std::vector<ToolEvent> out;
  for (const ToolEvent& event : events) {
    if (!out.empty() && out.back().kind == event.kind && event.kind != Kind::kCall) {
      out.back().text += event.text;
    } else {
      out.push_back(event);
    }
  }
  return out;
}

// The events of a text that comes in pieces of random lengths, always the same.
std::vector<ToolEvent> parsed(ToolDialect dialect, const std::string& text) {
  std::vector<ToolEvent> first;
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    ToolCallParser parser(dialect);
    std::vector<ToolEvent> events;
    for (size_t at = 0; at < text.size();) {
      const size_t n = round == 0 ? 1 : 1 + random() % 12;
      for (ToolEvent& event : parser.push(std::string_view(text).substr(at, n)))
        events.push_back(std::move(event));
      at += n;
    }
    for (ToolEvent& event : parser.finish()) events.push_back(std::move(event));
    if (round == 0) first = joined(events);
    EXPECT_EQ(joined(events).size(), first.size());
    EXPECT_TRUE(joined(events) == first) << "cut " << round << " of " << text;
  }
  return first;
}

TEST(ToolCallParser, HermesCallsAreTakenOutOfTheText) {
  const auto events = parsed(ToolDialect::kHermes,
                             "Let me look. < 3 <tool\n<tool_call>\n{\"name\": \"weather\", \"arguments\": "
                             "{\"city\": \"a}\\\"{\", \"n\": [1, {}]}}\n"
                             "</tool_call>\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0], (ToolEvent{Kind::kText, "Let me look. < 3 <tool"}));
  EXPECT_EQ(events[1], (ToolEvent{Kind::kCall, "weather"}));
  EXPECT_EQ(events[2], (ToolEvent{Kind::kArguments, "{\"city\": \"a}\\\"{\", \"n\": [1, {}]}"}));
  EXPECT_EQ(events[3], (ToolEvent{Kind::kCall, "now"}));
  EXPECT_EQ(events[4], (ToolEvent{Kind::kArguments, "{}"}));
}

TEST(ToolCallParser, TextWithoutACallIsAllOfTheText) {
  for (const char* text : {"plain", "ends in a tag <tool_cal", "blanks  \n", " <tool_cal> x"}) {
    const auto events = parsed(ToolDialect::kHermes, text);
    ASSERT_EQ(events.size(), 1u) << text;
    EXPECT_EQ(events[0].text, text);
  }
}

TEST(ToolCallParser, ACallWithoutArgumentsHasEmptyOnes) {
  const auto events = parsed(ToolDialect::kHermes, "<tool_call>{\"name\": \"now\"}</tool_call>");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1], (ToolEvent{Kind::kArguments, "{}"}));
}

TEST(ToolCallParser, LlamaCallsOrTalks) {
  const auto calls =
      parsed(ToolDialect::kLlama3,
             "{\"name\": \"a\", \"parameters\": {\"x\": \"; {\"}}; {\"name\": \"b\", \"parameters\": {}}");
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[1], (ToolEvent{Kind::kArguments, "{\"x\": \"; {\"}"}));
  EXPECT_EQ(calls[2], (ToolEvent{Kind::kCall, "b"}));
  const auto text = parsed(ToolDialect::kLlama3, "It is {\"name\": 1}; done");
  ASSERT_EQ(text.size(), 1u);
  EXPECT_EQ(text[0].text, "It is {\"name\": 1}; done");
}

TEST(ToolCallParser, ACallThatIsCutShortLosesNothingThatWasCertain) {
  const auto events =
      parsed(ToolDialect::kHermes, "<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": \"abc");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1], (ToolEvent{Kind::kArguments, "{\"x\": \"abc"}));
}

TEST(ToolDialect, IsReadFromTheTemplate) {
  EXPECT_EQ(tool_dialect_of("{% if tools %}<tool_call>{% endif %}"), ToolDialect::kHermes);
  EXPECT_EQ(tool_dialect_of("{% if tools %}{\"name\": , \"parameters\": }<|eot_id|>"), ToolDialect::kLlama3);
  EXPECT_EQ(tool_dialect_of("{{ messages }}"), ToolDialect::kNone);
}

std::pair<std::string, std::string> split(bool inside, const std::string& text) {
  std::pair<std::string, std::string> first;
  for (size_t n : {1u, 2u, 3u, 5u, 1000u}) {
    ThoughtSplitter splitter(inside);
    std::pair<std::string, std::string> out;
    for (size_t at = 0; at < text.size(); at += n) {
      const auto piece = splitter.push(std::string_view(text).substr(at, n));
      out.first += piece.thought;
      out.second += piece.text;
    }
    const auto rest = splitter.finish();
    out.first += rest.thought;
    out.second += rest.text;
    if (n == 1) first = out;
    EXPECT_EQ(out, first) << text << " by " << n;
  }
  return first;
}

TEST(ThoughtSplitter, ThoughtsComeBeforeTheAnswer) {
  using Both = std::pair<std::string, std::string>;
  EXPECT_EQ(split(false, "<think>\nhm < 3</think>\n\nYes."), (Both{"\nhm < 3", "Yes."}));
  EXPECT_EQ(split(true, "hm</think>Yes.</think>"), (Both{"hm", "Yes.</think>"}));
  EXPECT_EQ(split(false, "Yes. <think>no</think>"), (Both{"", "Yes. <think>no</think>"}));
  EXPECT_EQ(split(false, " <thin"), (Both{"", " <thin"}));
  EXPECT_EQ(split(true, "cut </thi"), (Both{"cut </thi", ""}));
}

}  // namespace
}  // namespace plow
