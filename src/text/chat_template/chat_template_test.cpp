// The language, against what jinja2 made of the same templates (testdata/*.json, written by
// tools/write_template_goldens.py).
#include "text/chat_template/chat_template.h"

#include "base/mapped_file.h"
#include "text/chat_template/chat_input_json.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace plow {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path kTestdata = fs::path(PLOW_SOURCE_DIR) / "src/text/chat_template/testdata";

std::string read(const fs::path& path) { return read_text_file(path).value(); }

json::object read_json(const fs::path& path) { return json::parse(read(path)).as_object(); }

ChatInput input_from(const json::value& value) { return chat_input_from_json(value.as_object()).value(); }

Result<std::string> render(std::string_view source, const ChatInput& input) {
  PLOW_TRY(const ChatTemplate chat_template, ChatTemplate::compile(source));
  PLOW_TRY(const std::string text, chat_template.render(input));
  PLOW_TRY(const std::vector<PromptSegment> segments, chat_template.render_segments(input));
  std::string joined;
  for (size_t i = 0; i < segments.size(); ++i) {
    EXPECT_FALSE(segments[i].text.empty());
    EXPECT_TRUE(i == 0 || segments[i].trusted != segments[i - 1].trusted);
    joined += segments[i].text;
  }
  EXPECT_EQ(joined, text);
  return text;
}

// `wanted` has "text", or "raises".
void expect_result(std::string_view source, const ChatInput& input, const json::object& wanted) {
  const Result<std::string> rendered = render(source, input);
  if (const json::value* text = wanted.if_contains("text")) {
    ASSERT_TRUE(rendered.ok()) << source << "\n" << rendered.error().message;
    EXPECT_EQ(*rendered, std::string_view(text->as_string())) << source;
  } else {
    ASSERT_FALSE(rendered.ok()) << source << "\nrenders " << *rendered << "\njinja2 raises "
                                << wanted.at("raises");
    EXPECT_EQ(rendered.error().error_class, ErrorClass::kInput);
    EXPECT_NE(rendered.error().message.find("line "), std::string::npos) << rendered.error().message;
  }
}

TEST(ChatTemplate, expressions_give_what_jinja2_gives) {
  const json::object golden = read_json(kTestdata / "expressions.json");
  const ChatInput input = input_from(golden.at("input"));
  const json::array& cases = golden.at("cases").as_array();
  EXPECT_GT(cases.size(), 900u);
  for (const json::value& one : cases) {
    const std::string expression(one.as_object().at("expression").as_string());
    expect_result("{{ " + expression + " }}", input, one.as_object());
  }
}

TEST(ChatTemplate, templates_render_as_with_jinja2) {
  int n_templates = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(kTestdata)) {
    if (entry.path().extension() != ".jinja") continue;
    ++n_templates;
    SCOPED_TRACE(entry.path().filename().string());
    const json::object golden = read_json(fs::path(entry.path()).replace_extension(".json"));
    const json::array& inputs = golden.at("inputs").as_array();
    const json::array& results = golden.at("results").as_array();
    ASSERT_EQ(inputs.size(), results.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      expect_result(read(entry.path()), input_from(inputs[i]), results[i].as_object());
    }
  }
  EXPECT_GE(n_templates, 50);
}

TEST(ChatTemplate, rendering_twice_gives_the_same) {
  const auto chat_template =
      ChatTemplate::compile("{% set ns = namespace(n=1) %}{{ messages[0].content }}{{ ns.n }}");
  ASSERT_TRUE(chat_template.ok());
  ChatInput input;
  input.messages = json::parse(R"([{"role": "user", "content": "Hi"}])");
  EXPECT_EQ(chat_template->render(input).value(), "Hi1");
  EXPECT_EQ(chat_template->render(input).value(), "Hi1");
}

TEST(ChatTemplate, the_order_of_keys_is_kept) {
  ChatInput input;
  input.messages = json::parse(R"([{"z": 1, "a": {"y": 2, "b": [3]}, "role": "user"}])");
  const auto rendered = render("{{ messages[0]|tojson }}", input);
  EXPECT_EQ(rendered.value(), R"({"z": 1, "a": {"y": 2, "b": [3]}, "role": "user"})");
}

TEST(ChatTemplate, a_variable_replaces_a_special_token) {
  ChatInput input;
  input.messages = json::parse(R"([{"role": "user"}])");
  input.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  input.variables = {{"eos_token", "mine"}};
  EXPECT_EQ(render("{{ bos_token }}{{ eos_token }}", input).value(), "<s>mine");
}

TEST(ChatTemplate, the_line_of_an_error_is_the_line_in_the_template) {
  ChatInput input;
  input.messages = json::parse(R"([{"role": "user"}])");
  const auto line_of = [&](std::string_view source) {
    const std::string message = render(source, input).error().message;
    return message.substr(0, message.find(':'));
  };
  EXPECT_EQ(line_of("a\nb\n{{ 1 / 0 }}\n"), "chat template, line 3");
  EXPECT_EQ(line_of("a\r\nb\r\n{{ x.y.z }}"), "chat template, line 3");
  EXPECT_EQ(line_of("{# two\nlines #}\n{% if true %}\n{{ 1 +\n nothing.x }}\n{% endif %}"),
            "chat template, line 5");
  EXPECT_EQ(line_of("{% macro f() %}\n{{ x.y }}\n{% endmacro %}\n\n{{ f() }}"), "chat template, line 2");
  EXPECT_EQ(line_of("{{ [1,\n2]\n+ 1 }}"), "chat template, line 3");
  EXPECT_EQ(line_of("a\n{% if x %}\nb"), "chat template, line 2");
  EXPECT_EQ(line_of("a\n{{ 'open }}"), "chat template, line 2");
}

}  // namespace
}  // namespace plow
