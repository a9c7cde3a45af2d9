// Renders every template of a list with every conversation of a list, for tools/compare_templates.py, which
// does the same with jinja2 and compares.
//
//   render_templates JOBS.json RESULTS.json
//
// JOBS.json: {"templates": [path, ...], "inputs": [input, ...]}, an input as in chat_input_json.h.
// RESULTS.json: for each template a list with one result for each input: {"segments": [[text, trusted], ...]}
// or {"error": message}.
#include "base/mapped_file.h"
#include "text/chat_template/chat_input_json.h"
#include "text/chat_template/chat_template.h"

#include <boost/json.hpp>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

namespace {

namespace json = boost::json;

json::object render(const plow::ChatTemplate& chat_template, const plow::ChatInput& input) {
  const auto segments = chat_template.render_segments(input);
  if (!segments.ok()) return {{"error", segments.error().message}};
  json::array parts;
  for (const plow::PromptSegment& segment : *segments)
    parts.push_back(json::array{segment.text, segment.trusted});
  return {{"segments", std::move(parts)}};
}

json::array render_all(const std::string& path, const std::vector<plow::ChatInput>& inputs) {
  json::array results;
  const auto source = plow::read_text_file(path);
  if (!source.ok()) {
    std::cerr << source.error().message << "\n";
    std::exit(1);
  }
  const auto chat_template = plow::ChatTemplate::compile(*source);
  for (const plow::ChatInput& input : inputs) {
    if (chat_template.ok()) {
      results.push_back(render(*chat_template, input));
    } else {
      results.push_back(json::object{{"error", chat_template.error().message}});
    }
  }
  return results;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: render_templates JOBS.json RESULTS.json\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  const json::object jobs = json::parse(text.str()).as_object();
  std::vector<plow::ChatInput> inputs;
  for (const json::value& input : jobs.at("inputs").as_array()) {
    auto read = plow::chat_input_from_json(input.as_object());
    if (!read.ok()) {
      std::cerr << read.error().message << "\n";
      return 1;
    }
    inputs.push_back(std::move(*read));
  }
  json::array all;
  for (const json::value& path : jobs.at("templates").as_array()) {
    all.push_back(render_all(std::string(path.as_string()), inputs));
  }
  std::ofstream(argv[2]) << json::serialize(all) << "\n";
  return 0;
}
