#include "checkpoint/gguf_model.h"

#include <array>
#include <charconv>

namespace plow {

namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view hf;
};

constexpr NamePair kTopNames[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
};

// Of a layer: "blk.N." before, ".weight" or ".bias" after.
constexpr NamePair kLayerNames[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},           {"ffn_down", "mlp.down_proj"},
};
// The norms before and after the MLP, which Gemma has both of.
constexpr NamePair kMlpNorm[] = {{"ffn_norm", "post_attention_layernorm"}};
constexpr NamePair kGemmaNorms[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

std::string_view look_up(std::span<const NamePair> names, std::string_view gguf) {
  for (const auto& pair : names) {
    if (pair.gguf == gguf) return pair.hf;
  }
  return {};
}

struct LayerName {
  std::string_view number, part, kind;
};

// "blk.12.attn_q.weight", the number as GGUF writes it (no sign, no leading zero).
std::optional<LayerName> split_layer_name(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const size_t first = name.find('.');
  const size_t last = name.rfind('.');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const LayerName layer{name.substr(0, first), name.substr(first + 1, last - first - 1),
                        name.substr(last + 1)};
  uint32_t number = 0;
  const auto [end, ec] =
      std::from_chars(layer.number.data(), layer.number.data() + layer.number.size(), number);
  if (ec != std::errc() || layer.number != std::to_string(number)) return std::nullopt;
  if (layer.kind != "weight" && layer.kind != "bias") return std::nullopt;
  return layer;
}

// "" when the architecture has no such tensor.
std::string hf_name(std::string_view gguf_name, const GgufArchitecture& architecture) {
  if (const auto top = look_up(kTopNames, gguf_name); !top.empty()) return std::string(top);
  const auto layer = split_layer_name(gguf_name);
  if (!layer) return "";
  std::string_view part = look_up(kLayerNames, layer->part);
  if (part.empty())
    part = architecture.gemma ? look_up(kGemmaNorms, layer->part) : look_up(kMlpNorm, layer->part);
  if (part.empty()) return "";
  return fmt::format("model.layers.{}.{}.{}", layer->number, part, layer->kind);
}

// Which heads' rows llama.cpp interleaved in this tensor; 0: none.
int64_t interleaved_heads(const CheckpointTensor& tensor, const GgufHeads& heads) {
  if (tensor.name.find(".self_attn.q_proj.") != std::string::npos) return heads.query;
  if (tensor.name.find(".self_attn.k_proj.") != std::string::npos) return heads.key_value;
  return 0;
}

}  // namespace

Result<std::vector<CheckpointTensor>> gguf_tensors(const GgufFile& gguf, const GgufArchitecture& architecture,
                                                   const GgufHeads& heads, const std::string& source) {
  std::vector<CheckpointTensor> tensors;
  for (const auto& stored : gguf.tensors) {
    if (stored.name == "rope_freqs.weight") continue;  // a parameter of rope, read by gguf_config
    CheckpointTensor tensor;
    tensor.name = hf_name(stored.name, architecture);
    if (tensor.name.empty()) {
      return input_error(fmt::format("{}: tensor '{}' is none that the architecture '{}' has", source,
                                     stored.name, architecture.name));
    }
    tensor.stored_name = stored.name;
    tensor.dtype = stored.dtype;
    tensor.shape = stored.shape;
    tensor.offset_bytes = stored.offset_bytes;
    tensor.bytes = stored.bytes;
    if (architecture.interleaved_qk) {
      const int64_t n_heads = interleaved_heads(tensor, heads);
      const int64_t rows = tensor.shape.size() > 1 ? tensor.n_rows() : tensor.row_values();
      if (n_heads != 0 && rows % (2 * n_heads) != 0) {
        return input_error(fmt::format("{}: tensor '{}' has {} rows, which do not make {} heads of even size",
                                       source, stored.name, rows, n_heads));
      }
      tensor.interleaved_heads = static_cast<uint32_t>(n_heads);
    }
    if (architecture.gemma && tensor.name.find("norm") != std::string::npos) tensor.addend = -1.0f;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace plow
