#include "compile/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace plow {

namespace {

namespace json = boost::json;

constexpr Op kWholeProgram = Op::kLeave;

bool applies(const OpGraph& graph, const TunedSetting& setting) {
  if (setting.op == kWholeProgram) return setting.inputs == graph.hidden && setting.outputs == graph.vocab;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != setting.op || node.shape.cols != setting.outputs) continue;
    if (graph.node(graph.inputs_of(NodeId(n))[0]).shape.cols == setting.inputs) return true;
  }
  return false;
}

const char* place_name(Op op) { return op == kWholeProgram ? "program" : op_name(op); }

std::optional<Op> parse_place(std::string_view name) {
  if (name == "program") return kWholeProgram;
#define PLOW_OP(number, Name, text) \
  if (name == #text) return Op::k##Name;
#include "abi/ops.def"
  return std::nullopt;
}

Error wrong(const char* what) {
  return input_error(fmt::format("the plan in a build record has no valid {}", what));
}

Result<TunedSetting> setting_from_json(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return wrong("setting");
  const auto number = [&](const char* key) -> std::optional<uint32_t> {
    const json::value* field = object->if_contains(key);
    if (field == nullptr || !field->is_int64() || field->get_int64() < 0 || field->get_int64() > 0xffffffffLL)
      return std::nullopt;
    return static_cast<uint32_t>(field->get_int64());
  };
  const auto text = [&](const char* key) -> std::string_view {
    const json::value* field = object->if_contains(key);
    return field != nullptr && field->is_string() ? std::string_view(field->get_string())
                                                  : std::string_view();
  };
  const std::string_view program = text("program");
  const auto op = parse_place(text("op"));
  const auto split = parse_split(text("split"));
  const auto inputs = number("inputs"), outputs = number("outputs"), tile = number("value");
  if ((program != "few" && program != "many") || !op || !split || !inputs || !outputs || !tile)
    return wrong("setting");
  return TunedSetting{program == "many", *op, *inputs, *outputs, *tile, *split};
}

}  // namespace

Plan default_plan(Isa isa) { return {default_part(isa), {}}; }

std::vector<TunedSetting> settings_for(const OpGraph& graph, const std::vector<TunedSetting>& settings) {
  std::vector<TunedSetting> used;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(used),
               [&](const TunedSetting& setting) { return applies(graph, setting); });
  return used;
}

std::string to_text(const TunedSetting& setting) {
  std::string text = fmt::format("{} {} {} x {}:", setting.many_rows ? "many" : "few", place_name(setting.op),
                                 setting.inputs, setting.outputs);
  if (setting.value != 0)
    text += fmt::format(" {} {}", setting.op == kWholeProgram ? "row tile" : "tile", setting.value);
  if (setting.split != Split::kAuto) text += fmt::format(" split {}", split_name(setting.split));
  return text;
}

json::object plan_to_json(const Plan& plan) {
  json::object figures;
  for (size_t i = 0; i < kFigures; ++i)
    figures[figure_info(static_cast<Figure>(i)).name] = plan.part.figures[i];
  json::array settings;
  for (const TunedSetting& s : plan.settings) {
    settings.push_back({{"program", s.many_rows ? "many" : "few"},
                        {"op", place_name(s.op)},
                        {"inputs", s.inputs},
                        {"outputs", s.outputs},
                        {"value", s.value},
                        {"split", split_name(s.split)}});
  }
  return {{"part", plan.part.name},
          {"isa", isa_name(plan.part.isa)},
          {"workers", plan.part.n_workers},
          {"figures", std::move(figures)},
          {"settings", std::move(settings)}};
}

Result<Plan> plan_from_json(const json::object& object) {
  Plan plan;
  const json::value* name = object.if_contains("part");
  const json::value* isa = object.if_contains("isa");
  const json::value* workers = object.if_contains("workers");
  const json::value* figures = object.if_contains("figures");
  const json::value* settings = object.if_contains("settings");
  if (name == nullptr || !name->is_string()) return wrong("part");
  if (isa == nullptr || !isa->is_string()) return wrong("isa");
  if (workers == nullptr || !workers->is_int64()) return wrong("workers");
  if (figures == nullptr || !figures->is_object()) return wrong("figures");
  if (settings == nullptr || !settings->is_array()) return wrong("settings");
  plan.part.name = name->get_string().c_str();
  bool known = false;
#define PLOW_ISA(number, Name, text, vendor) \
  if (isa->get_string() == (text)) plan.part.isa = Isa::k##Name, known = true;
#include "abi/isas.def"
  if (!known) return wrong("isa");
  plan.part.n_workers = static_cast<uint32_t>(workers->get_int64());
  for (size_t i = 0; i < kFigures; ++i) {
    const char* figure = figure_info(static_cast<Figure>(i)).name;
    const json::value* value = figures->get_object().if_contains(figure);
    if (value == nullptr || !value->is_number()) return wrong(figure);
    plan.part.figures[i] = value->to_number<double>();
  }
  PLOW_TRY_STATUS(check_part(plan.part));
  for (const json::value& value : settings->get_array()) {
    PLOW_TRY(plan.settings.emplace_back(), setting_from_json(value));
  }
  return plan;
}

}  // namespace plow
