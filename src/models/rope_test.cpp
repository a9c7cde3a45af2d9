// Inverse frequencies against those of transformers 5.24 (modeling_rope_utils.py with float64 in place of
// float32), for head_dim 16 and max_position_embeddings 8192.
#include "models/rope.h"

#include <gtest/gtest.h>

namespace plow {
namespace {

struct Known {
  const char* parameters;
  double attention_factor;
  std::vector<double> frequencies;
};

const Known kKnown[] = {
    {R"({"rope_type": "linear", "rope_theta": 500.0, "factor": 2.5})",
     1.0,
     {0.4, 0.1839453191307081, 0.08458970107524513, 0.03889969889864292, 0.01788854381999832,
      0.008226284754383117, 0.003782966436012703, 0.0017396474208327853}},
    {R"({"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
         "original_max_position_embeddings": 8192})",
     1.0,
     {1.0, 0.19392274474868576, 0.03760603093086393, 0.0072926647372171085, 0.0005248461609929547,
      3.428102195952591e-05, 6.647869871181236e-06, 1.2891731721515574e-06}},
    {R"({"rope_type": "llama3", "rope_theta": 10000.0, "factor": 32.0, "low_freq_factor": 1.5, "high_freq_factor": 3.5,
         "original_max_position_embeddings": 100})",
     1.0,
     {1.0, 0.31622776601683794, 0.0075594255601368, 0.0009882117688026185, 0.0003125, 9.882117688026184e-05,
      3.125e-05, 9.882117688026186e-06}},
    {R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 4096})",
     1.138629436111989,
     {1.0, 0.31622776601683794, 0.1, 0.02569350598886808, 0.00625, 0.0013834964763236657, 0.00025,
      7.905694150420948e-05}},
    {R"({"type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 4096, "truncate": false,
         "finetuned": true})",
     1.138629436111989,
     {1.0, 0.31622776601683794, 0.1, 0.02861360881198889, 0.006556971521129435, 0.0012856320307266878,
      0.00025, 7.905694150420948e-05}},
    {R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.707,
         "mscale_all_dim": 1.0, "beta_fast": 16, "beta_slow": 2})",
     0.9210423553163399,
     {1.0, 0.31622776601683794, 0.1, 0.03162277660168379, 0.006750000000000002, 0.001106797181058933, 2.5e-05,
      7.905694150420947e-06}},
    {R"({"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 4.0, "original_max_position_embeddings": 32768,
         "attention_factor": 1.25, "mscale": null})",
     1.25,
     {1.0, 0.17782794100389226, 0.03162277660168379, 0.004217559938927618, 0.0005, 4.445698525097307e-05,
      7.905694150420949e-06, 1.4058533129758728e-06}},
    {R"({"rope_type": "yarn", "rope_theta": 10.0, "factor": 2.0, "original_max_position_embeddings": 10000000, "truncate": false})",
     1.0693147180559945,
     {0.5, 0.37494710466622794, 0.28117066259517454, 0.21084825171429114, 0.15811388300841897,
      0.11856868528308277, 0.08891397050194613, 0.0666760716081662}},
    {R"({"rope_type": "yarn", "rope_theta": 10000.0, "factor": null, "original_max_position_embeddings": 1024})",
     1.2079441541679836,
     {1.0, 0.31622776601683794, 0.07812500000000001, 0.017787811838447132, 0.0034375, 0.00039528470752104737,
      0.000125, 3.952847075210474e-05}},
    {R"({"rope_type": "yarn", "rope_theta": 10.0, "factor": 2.0, "original_max_position_embeddings": 1000})",
     1.0693147180559945,
     {1.0, 0.7498942093324559, 0.5623413251903491, 0.4216965034285823, 0.31622776601683794,
      0.23713737056616555, 0.16893654395369767, 0.12001692889469916}},
    {R"({"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0})",
     1.0,
     {1.0, 0.31622776601683794, 0.1, 0.03162277660168379, 0.01, 0.003162277660168379, 0.001,
      0.00031622776601683794}},
};

// A few roundings of double.
constexpr double kRelative = 1e-14;

TEST(Rope, FrequenciesAndAttentionFactorsAreThoseOfTransformers) {
  for (const Known& known : kKnown) {
    const Result<JsonValue> json =
        parse_json(fmt::format("{{\"rope_scaling\": {}}}", known.parameters), "config.json");
    ASSERT_TRUE(json.ok()) << json.error().message;
    JsonReader reader(*json, "config.json");
    const Result<JsonFields> config = reader.root();
    ASSERT_TRUE(config.ok());
    const Result<Rope> rope = read_rope(*config, {10000.0, 16, 8192});
    ASSERT_TRUE(rope.ok()) << rope.error().message;
    ASSERT_EQ(rope->inverse_frequencies.size(), known.frequencies.size());
    for (size_t j = 0; j < known.frequencies.size(); ++j) {
      EXPECT_NEAR(rope->inverse_frequencies[j], known.frequencies[j], kRelative * known.frequencies[j])
          << known.parameters << " " << j;
    }
    EXPECT_EQ(rope->attention_factor, static_cast<float>(known.attention_factor)) << known.parameters;
    EXPECT_TRUE(reader.check_all_read().ok()) << known.parameters;
  }
}

}  // namespace
}  // namespace plow
