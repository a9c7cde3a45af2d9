#include "checkpoint/json.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plow {
namespace {

JsonValue parsed(std::string_view text) {
  auto value = parse_json(text, "config.json");
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message);
  return value.ok() ? std::move(value).value() : JsonValue();
}

TEST(Json, ReadsEveryKindOfValueInTheOrderOfTheDocument) {
  const JsonValue root = parsed(
      R"( {"z":null,"a":[true,false],"i":-7,"u":18446744073709551615,"d":1.5,"s":"\u00e9\n","o":{}} )");
  ASSERT_NE(root.as_object(), nullptr);
  std::string keys;
  for (const auto& member : *root.as_object()) keys += member.key;
  EXPECT_EQ(keys, "zaiudso");
  EXPECT_TRUE(root.find("z")->is_null());
  EXPECT_TRUE(*root.find("a")->as_array()->at(0).as_bool());
  EXPECT_EQ(*root.find("i")->as_int(), -7);
  EXPECT_EQ(root.find("u")->as_int(), nullptr);
  EXPECT_EQ(root.find("u")->as_uint(), 18446744073709551615u);
  EXPECT_EQ(root.find("d")->as_number(), 1.5);
  EXPECT_EQ(*root.find("s")->as_string(), "\xc3\xa9\n");
  EXPECT_TRUE(root.find("o")->as_object()->empty());
  EXPECT_EQ(root.find("absent"), nullptr);
}

TEST(Json, ReadsNumbersThatOlderAndNewerFilesHave) {
  const JsonValue root = parsed(
      R"([Infinity, -Infinity, NaN, {"__float__":"Infinity"}, {"__float__":"-Infinity"}, {"__float__":"NaN"},
          1000000000000000019884624838656, 1e-5, -0, 9223372036854775807, -9223372036854775808, 9007199254740993,
          {"__float__":"Infinity","x":1}, {"__float__":"1"}])");
  const auto& a = *root.as_array();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(a[0].as_number(), inf);
  EXPECT_EQ(a[1].as_number(), -inf);
  EXPECT_TRUE(std::isnan(*a[2].as_number()));
  EXPECT_EQ(a[3].as_number(), inf);
  EXPECT_EQ(a[4].as_number(), -inf);
  EXPECT_TRUE(std::isnan(*a[5].as_number()));
  EXPECT_EQ(a[6].as_number(), 1e30 + 19884624838656.0);
  EXPECT_EQ(a[6].as_int(), nullptr);
  EXPECT_EQ(a[7].as_number(), 1e-5);
  EXPECT_TRUE(std::signbit(*a[8].as_number()));
  EXPECT_EQ(*a[9].as_int(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(*a[10].as_int(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*a[11].as_int(), 9007199254740993);
  EXPECT_NE(a[12].as_object(), nullptr);  // another key: an object that happens to have this one
  EXPECT_NE(a[13].as_object(), nullptr);  // not one of the three names
}

TEST(Json, WritesTextThatReadsBackToTheSameTree) {
  const JsonValue root = parsed(
      R"({"a":[1,2.0,1e300,-0.1,{"b":null}],"t":"quote \" slash \\ tab \t bell \u0007 \ud83d\ude00","n":NaN,"i":-Infinity,
          "u":18446744073709551615,"e":{},"l":[],"x":true})");
  EXPECT_EQ(parsed(to_json(root)), root);
  EXPECT_EQ(to_json(parsed(R"({"b": 1.0, "a": [ ]})")), R"({"b":1.0,"a":[]})");
}

struct Hostile {
  std::string text;
  std::string message;  // a part of it
};

TEST(Json, RefusesHostileDocumentsWithOneClearError) {
  const JsonLimits limits{.max_bytes = 1000, .max_depth = 4, .max_values = 20};
  const std::vector<Hostile> cases = {
      {"", "not valid JSON"},
      {"   ", "not valid JSON"},
      {"7", "must be a JSON object or array"},
      {"\"x\"", "must be a JSON object or array"},
      {R"({"__float__":"NaN"})", "must be a JSON object or array"},
      {R"({"a":1,"a":2})", "the key 'a' stands twice"},
      {R"({"a":{"b":1,"c":2,"b":3}})", "the key 'b' stands twice"},
      {R"({"a":1,"\u0061":2})", "the key 'a' stands twice"},
      {R"({"a":1)", "not valid JSON"},
      {R"({"a":)", "not valid JSON"},
      {R"({"a")", "not valid JSON"},
      {R"({"a":"x)", "not valid JSON"},
      {R"({"a" 1})", "not valid JSON"},
      {R"({"a":1 "b":2})", "not valid JSON"},
      {R"({"a":1,})", "not valid JSON"},
      {R"({a:1})", "not valid JSON"},
      {"[1,]", "not valid JSON"},
      {"[,1]", "not valid JSON"},
      {"[1 2]", "not valid JSON"},
      {"[1}", "not valid JSON"},
      {"[1]]", "after the end"},
      {"{} {}", "after the end"},
      {"[1] x", "after the end"},
      {"[tru]", "not valid JSON: 'tru' is not a value"},
      {"[truex]", "'truex' is not a value"},
      {"[nan]", "'nan' is not a value"},
      {"[+Infinity]", "'+Infinity' is not a value"},
      {"[01]", "'01' is not a value"},
      {"[1.]", "'1.' is not a value"},
      {"[.5]", "'.5' is not a value"},
      {"[1e]", "'1e' is not a value"},
      {"[-]", "'-' is not a value"},
      {"[0x10]", "'0x10' is not a value"},
      {"[1e999]", "outside the range of a double"},
      {"[\"\xff\"]", "not valid JSON"},          // not UTF-8
      {"[\"\xed\xa0\x80\"]", "not valid JSON"},  // a surrogate
      {R"(["\ud800"])", "not valid JSON"},       // half a pair
      {R"(["\q"])", "not valid JSON"},
      {"[\"a\nb\"]", "not valid JSON"},  // a bare control character
      {std::string("[1\0]", 4), "not"},
      {"[[[[[1]]]]]", "deeper than 4 levels"},
      {"[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]", "more than 20 JSON values"},
      {std::string(1001, ' '), "1001 bytes of JSON, more than the 1000"},
      {std::string(900, '['), "deeper than 4"},
      {std::string(900, '{'), "not valid JSON"},
  };
  for (const auto& hostile : cases) {
    const auto value = parse_json(hostile.text, "config.json", limits);
    ASSERT_FALSE(value.ok()) << hostile.text;
    EXPECT_TRUE(value.error().message.starts_with("config.json: ")) << value.error().message;
    EXPECT_NE(value.error().message.find(hostile.message), std::string::npos)
        << hostile.text << " gave: " << value.error().message;
    EXPECT_EQ(value.error().error_class, ErrorClass::kInput);
  }
}

TEST(Json, AcceptsDocumentsAtTheLimits) {
  EXPECT_TRUE(parse_json("[[[[1]]]]", "x", {.max_bytes = 9, .max_depth = 4, .max_values = 5}).ok());
  EXPECT_FALSE(parse_json("[[[[1]]]]", "x", {.max_bytes = 9, .max_depth = 4, .max_values = 4}).ok());
  EXPECT_FALSE(parse_json("[[[[1]]]]", "x", {.max_bytes = 8, .max_depth = 4, .max_values = 5}).ok());
}

constexpr std::string_view kConfig = R"({
  "hidden_size": "x", "layers": 2, "eps": 1e-5, "tied": true, "name": "llama", "zero": 0, "none": null, "big": 4294967296,
  "theta": Infinity, "eos": [1, 2], "mixed": [1, "a"], "act": ["silu"],
  "rope_scaling": {"factor": "y", "rope_type": "llama3", "extra": 1},
  "list": [{"type": "A", "odd": 1}, {"type": "B"}], "dropout": 0.0, "unused": {"deep": [1, 2, 3]}})";

// The message of an error, or "" of a value.
template <class T>
std::string message(const Result<T>& result) {
  return result.ok() ? "" : result.error().message;
}

TEST(JsonFields, SayWhatAFieldMustBeAndWhatItIs) {
  const JsonValue tree = parsed(kConfig);
  JsonReader reader(tree, "config.json");
  const JsonFields f = reader.root().value();
  EXPECT_EQ(message(f.positive("hidden_size")),
            "config.json: 'hidden_size' must be a positive integer, found \"x\"");
  EXPECT_EQ(message(f.positive("absent")), "config.json: 'absent' is missing; it must be a positive integer");
  EXPECT_EQ(message(f.positive("zero")), "config.json: 'zero' must be a positive integer, found 0");
  EXPECT_EQ(message(f.positive("big")), "config.json: 'big' must be a positive integer, found 4294967296");
  EXPECT_EQ(message(f.positive("eps")), "config.json: 'eps' must be a positive integer, found 1e-05");
  EXPECT_EQ(message(f.integer("layers", 3, 9)),
            "config.json: 'layers' must be an integer from 3 to 9, found 2");
  EXPECT_EQ(message(f.number("theta")),
            R"(config.json: 'theta' must be a finite number, found {"__float__":"Infinity"})");
  EXPECT_EQ(message(f.number("none")), "config.json: 'none' must be a finite number, found null");
  EXPECT_EQ(message(f.boolean("layers")), "config.json: 'layers' must be true or false, found 2");
  EXPECT_EQ(message(f.string("layers")), "config.json: 'layers' must be a string, found 2");
  EXPECT_EQ(message(f.integers("mixed")),
            R"(config.json: 'mixed' must be an array of integers, found [1,"a"])");
  EXPECT_EQ(message(f.numbers("name")),
            R"(config.json: 'name' must be an array of finite numbers, found "llama")");
  EXPECT_EQ(message(f.strings("eos")), "config.json: 'eos' must be an array of strings, found [1,2]");
  EXPECT_EQ(message(f.object("eos")), "config.json: 'eos' must be an object, found [1,2]");
  EXPECT_EQ(message(f.objects("eos")), "config.json: 'eos' must be an array of objects, found [1,2]");
  const JsonFields rope = f.object("rope_scaling").value();
  EXPECT_EQ(message(rope.number("factor")),
            "config.json: 'rope_scaling.factor' must be a finite number, found \"y\"");
  const auto list = f.objects("list").value();
  EXPECT_EQ(message(list[1].string("odd")), "config.json: 'list[1].odd' is missing; it must be a string");
}

TEST(JsonFields, GiveValuesAndDefaults) {
  const JsonValue tree = parsed(kConfig);
  JsonReader reader(tree, "config.json");
  const JsonFields f = reader.root().value();
  EXPECT_EQ(f.positive("layers").value(), 2);
  EXPECT_EQ(f.number("layers").value(), 2.0);
  EXPECT_EQ(f.number("eps").value(), 1e-5);
  EXPECT_TRUE(f.boolean("tied").value());
  EXPECT_EQ(f.string("name").value(), "llama");
  EXPECT_EQ(f.integers("eos").value(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(f.numbers("eos").value(), (std::vector<double>{1, 2}));
  EXPECT_EQ(f.strings("act").value(), (std::vector<std::string>{"silu"}));
  EXPECT_EQ(f.positive_or("absent", 5).value(), 5);
  EXPECT_EQ(f.positive_or("none", 5).value(), 5);
  EXPECT_EQ(f.number_or("none", 0.5).value(), 0.5);
  EXPECT_TRUE(f.boolean_or("none", true).value());
  EXPECT_EQ(f.string_or("none", "d").value(), "d");
  EXPECT_FALSE(f.positive_or("hidden_size", 5).ok());  // a wrong value is no absent value
  EXPECT_FALSE(f.object_or_none("none").value().has_value());
  EXPECT_TRUE(f.object_or_none("rope_scaling").value().has_value());
  EXPECT_FALSE(f.object_or_none("eos").ok());
  EXPECT_FALSE(f.has("none"));
}

TEST(JsonReader, NamesTheFieldsThatNobodyAskedFor) {
  const JsonValue tree = parsed(kConfig);
  JsonReader reader(tree, "config.json");
  const JsonFields f = reader.root().value();
  (void)f.positive("hidden_size");  // a failed read is a read
  f.ignore({"layers", "eps", "tied", "name", "zero", "big", "theta", "eos", "mixed", "act", "not there"});
  (void)f.positive_or("none", 1);
  const JsonFields rope = f.object("rope_scaling").value();
  (void)rope.string("rope_type");
  const auto list = f.objects("list").value();
  (void)list[0].string("type");
  EXPECT_EQ(reader.unread(), (std::vector<std::string>{"rope_scaling.factor", "rope_scaling.extra",
                                                       "list[0].odd", "list[1].type", "dropout", "unused"}));
  EXPECT_NE(message(reader.check_all_read()).find(R"('rope_scaling.factor' ("y"), 'rope_scaling.extra' (1))"),
            std::string::npos)
      << message(reader.check_all_read());
  (void)rope.find("factor");
  rope.ignore({"extra"});
  (void)list[0].find("odd");
  (void)list[1].find("type");
  f.ignore({"dropout", "unused"});  // read whole: nothing below counts
  EXPECT_TRUE(reader.check_all_read().ok());
}

TEST(JsonReader, RefusesARootThatIsNoObject) {
  const JsonValue tree = parsed("[1]");
  JsonReader reader(tree, "x.json");
  EXPECT_EQ(message(reader.root()), "x.json: the document must be a JSON object");
}

TEST(JsonValue, QuotesLongValuesBriefly) {
  const JsonValue tree = parsed("[\"" + std::string(100000, 'x') + "\"]");
  EXPECT_LT(tree.brief().size(), 70u);
  JsonValue::Array many(100000, JsonValue(int64_t{12345}));
  EXPECT_LT(JsonValue(std::move(many)).brief().size(), 70u);
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xc3\xa9";
  const std::string brief = JsonValue(accents).brief();
  EXPECT_TRUE(parse_json("[\"" + brief.substr(1, brief.size() - 4) + "\"]", "x").ok())
      << "cut inside a character";
}

}  // namespace
}  // namespace plow
