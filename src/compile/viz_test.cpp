#include "compile/viz.h"

#include "compile/testing_bundle.h"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <map>

namespace plow {
namespace {

namespace json = boost::json;

const VizTitle kTitle{"toy </script> <model>", "ToyForCausalLM"};

TEST(Viz, HoldsEveryPacketWhereTheScheduleHasIt) {
  const ToyBundle bundle = toy_bundle(3);
  const json::value data = json::parse(viz_json(bundle.file, bundle.stages, kTitle));
  const auto& programs = data.at("programs").as_array();
  ASSERT_EQ(programs.size(), bundle.file.programs().size());
  for (size_t i = 0; i < programs.size(); ++i) {
    const ProgramView& view = bundle.file.programs()[i];
    const Schedule& schedule = bundle.stages.programs[i].schedule;
    const json::object& packets = programs[i].at("packets").as_object();
    for (const auto& column : packets)
      EXPECT_EQ(column.value().as_array().size(), view.packets.size()) << column.key();
    for (size_t p = 0; p < view.packets.size(); ++p) {
      EXPECT_EQ(packets.at("worker").at(p).to_number<uint32_t>(), schedule.tasks[p].worker);
      EXPECT_DOUBLE_EQ(packets.at("start").at(p).to_number<double>(), schedule.tasks[p].start_ns);
      const auto op = packets.at("op").at(p).to_number<size_t>();
      EXPECT_EQ(data.at("ops").at(op).as_string(), op_name(static_cast<Op>(view.packets[p].body)));
    }
    EXPECT_EQ(programs[i].at("buffers").as_array().size(), schedule.buffers.size());
    EXPECT_EQ(programs[i].at("tensors").as_array().size(), view.tensors.size());
    EXPECT_EQ(programs[i].at("waits").as_array().size(), view.waits.size());
  }
}

// The page draws what no verifier looks at: buffers that share bytes must not share time.
TEST(Viz, BuffersThatShareBytesDoNotShareTime) {
  const ToyBundle bundle = toy_bundle(2);
  const json::value data = json::parse(viz_json(bundle.file, bundle.stages, kTitle));
  const auto& buffers = data.at("programs").at(0).at("buffers").as_array();
  size_t sharing = 0;
  for (const json::value& a : buffers) {
    for (const json::value& b : buffers) {
      if (&a >= &b) continue;
      const auto number = [](const json::value& buffer, const char* key) {
        return buffer.at(key).to_number<double>();
      };
      const bool bytes = number(a, "offset") < number(b, "offset") + number(b, "bytes") &&
                         number(b, "offset") < number(a, "offset") + number(a, "bytes");
      if (!bytes) continue;
      ++sharing;
      EXPECT_TRUE(number(a, "end") <= number(b, "start") || number(b, "end") <= number(a, "start"))
          << json::serialize(a) << " and " << json::serialize(b);
    }
  }
  EXPECT_GT(sharing, 0u);
}

TEST(Viz, WeightBytesOfThePacketsAreThoseOfTheTapeWithoutTheEmbeddingsRows) {
  const ToyBundle bundle = toy_bundle(3);
  const json::value data = json::parse(viz_json(bundle.file, bundle.stages, kTitle));
  double streamed = 0, listed = 0;
  for (const json::value& bytes : data.at("programs").at(0).at("packets").at("weight_bytes").as_array())
    streamed += bytes.to_number<double>();
  for (const StreamEntry& entry : bundle.file.programs()[0].stream) listed += entry.kv == 0 ? entry.bytes : 0;
  EXPECT_EQ(streamed, listed);
  EXPECT_GT(streamed, 0);
}

TEST(Viz, ThePageNeedsNoNetworkAndNoNameCanEndItsScript) {
  const ToyBundle bundle = toy_bundle(2);
  const std::string page = viz_page(bundle.file, bundle.stages, kTitle);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("@DATA@"), std::string::npos);
  EXPECT_EQ(page.find("toy </script>"), std::string::npos);
  size_t scripts = 0;
  for (size_t at = page.find("</script>"); at != std::string::npos; at = page.find("</script>", at + 1))
    ++scripts;
  EXPECT_EQ(scripts, 2u);  // the data block and the code
  const size_t begin = page.find("type=\"application/json\">") + 24;
  const json::value data = json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(data.at("model").at("name").as_string(), kTitle.name);
}

TEST(Viz, EveryOperatorHasAColourOfItsOwn) {
  const ToyBundle bundle = toy_bundle(2);
  const std::string page = viz_page(bundle.file, bundle.stages, kTitle);
#define PLOW_OP(number, Name, text) \
  EXPECT_NE(page.find(" " #text ": ['#"), std::string::npos) << #text " is drawn in the colour of protocol packets";
#include "abi/ops.def"
}

TEST(Viz, TheSameBundleGivesTheSamePage) {
  const ToyBundle a = toy_bundle(2), b = toy_bundle(2);
  EXPECT_EQ(viz_page(a.file, a.stages, kTitle), viz_page(b.file, b.stages, kTitle));
}

}  // namespace
}  // namespace plow
