#include "checkpoint/gguf.h"

#include "base/byte_reader.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>
#include <unordered_set>

namespace plow {

namespace {

constexpr uint64_t kDefaultAlignment = 32;  // the specification's, when general.alignment is absent
constexpr uint64_t kMaxKeyBytes = 65535;    // the specification's bound
constexpr uint64_t kMaxNameBytes = 64;      // the specification's bound on a tensor's name
constexpr uint32_t kMaxDimensions = 4;      // the specification's ("currently at most 4")
constexpr uint32_t kMaxArrayDepth = 8;      // no published key nests arrays; the specification names no bound
// A string outside of arrays. The longest is tokenizer.huggingface.json, a whole tokenizer.json of some 40
// MB.
constexpr uint64_t kMaxStringBytes = uint64_t{256} << 20;
// The least that an entry takes: an empty key, its type, a value of one byte; an empty name, no dimensions,
// type, offset.
constexpr uint64_t kMinMetadataBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

size_t scalar_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

// enum ggml_type of ggml.h. What is not read has its name here for the message.
struct GgmlType {
  uint32_t number;
  std::string_view name;
  std::optional<StoredDType> dtype;
};
constexpr GgmlType kGgmlTypes[] = {
    {0, "F32", StoredDType::kF32},
    {1, "F16", StoredDType::kF16},
    {2, "Q4_0", StoredDType::kQ4_0},
    {3, "Q4_1", StoredDType::kQ4_1},
    {6, "Q5_0", StoredDType::kQ5_0},
    {7, "Q5_1", StoredDType::kQ5_1},
    {8, "Q8_0", StoredDType::kQ8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", {}},
    {11, "Q3_K", {}},
    {12, "Q4_K", StoredDType::kQ4_K},
    {13, "Q5_K", StoredDType::kQ5_K},
    {14, "Q6_K", StoredDType::kQ6_K},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}},
    {24, "I8", {}},
    {25, "I16", {}},
    {26, "I32", {}},
    {27, "I64", {}},
    {28, "F64", {}},
    {29, "IQ1_M", {}},
    {30, "BF16", StoredDType::kBf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
    {40, "NVFP4", {}},
    {41, "Q1_0", {}},
};

double shortest_decimal(float value) {
  return std::strtod(fmt::format("{}", value).c_str(), nullptr);  // "inf" and "nan" too
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& source)
      : file_(file), reader_(file), source_(source) {}

  Result<GgufFile> parse() {
    PLOW_TRY_STATUS(read_header());
    for (uint64_t i = 0; i < n_metadata_; ++i) PLOW_TRY_STATUS(read_metadata());
    gguf_.metadata = JsonValue(std::move(scalars_));
    PLOW_TRY_STATUS(read_alignment());
    std::vector<Extent> extents;
    for (uint64_t i = 0; i < n_tensors_; ++i) PLOW_TRY_STATUS(read_tensor(extents));
    PLOW_TRY_STATUS(place_tensors(extents));
    return std::move(gguf_);
  }

 private:
  // Where a tensor's data lie, relative to the start of the data, which is known only after the last
  // description.
  struct Extent {
    uint64_t begin;
    uint64_t size;
    size_t tensor;
  };

  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return input_error(source_ + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
  Error cut_short(std::string_view what) const {
    return error("the file ends inside {} (is the download complete?)", what);
  }

  Status read_header() {
    if (reader_.read_string(4) != "GGUF") return error("does not begin with 'GGUF'; is this a GGUF file?");
    const auto version = reader_.read<uint32_t>();
    n_tensors_ = reader_.read<uint64_t>();
    n_metadata_ = reader_.read<uint64_t>();
    if (!reader_.ok()) return cut_short("the header");
    if (version != 2 && version != 3) {
      if ((version & 0xffffu) == 0 && version != 0)
        return error("is a big-endian GGUF file; only little-endian ones are read");
      return error("is GGUF version {}; versions 2 and 3 are read", version);
    }
    if (n_metadata_ > reader_.remaining() / kMinMetadataBytes) {
      return error("claims {} metadata entries, more than its {} bytes can hold", n_metadata_, file_.size());
    }
    if (n_tensors_ > reader_.remaining() / kMinTensorBytes) {
      return error("claims {} tensors, more than its {} bytes can hold", n_tensors_, file_.size());
    }
    return {};
  }

  Result<std::string> read_string(std::string_view what, uint64_t max_bytes) {
    const auto n = reader_.read<uint64_t>();
    if (!reader_.ok()) return cut_short(what);
    if (n > max_bytes) return error("the length {} of {} is over the bound of {}", n, what, max_bytes);
    const std::string_view text = reader_.read_string(n);
    if (!reader_.ok()) return cut_short(what);
    if (!simdjson::validate_utf8(text)) return error("{} is not UTF-8", what);
    return std::string(text);
  }

  Status read_metadata() {
    PLOW_TRY(std::string key, read_string("a metadata key", kMaxKeyBytes));
    if (!keys_.insert(key).second) return error("the metadata key '{}' stands twice", key);
    const std::string what = fmt::format("the metadata value '{}'", key);
    const auto type = static_cast<GgufType>(reader_.read<uint32_t>());
    if (!reader_.ok()) return cut_short(what);
    if (type == GgufType::kArray) {
      GgufArray array;
      PLOW_TRY_STATUS(read_array(what, 1, array));
      gguf_.arrays.emplace(std::move(key), array);
      return {};
    }
    PLOW_TRY(JsonValue value, read_scalar(type, what));
    scalars_.push_back({std::move(key), std::move(value)});
    return {};
  }

  Result<JsonValue> read_scalar(GgufType type, const std::string& what) {
    JsonValue value;
    switch (type) {
      case GgufType::kUint8:
        value = JsonValue(static_cast<int64_t>(reader_.read<uint8_t>()));
        break;
      case GgufType::kInt8:
        value = JsonValue(static_cast<int64_t>(reader_.read<int8_t>()));
        break;
      case GgufType::kUint16:
        value = JsonValue(static_cast<int64_t>(reader_.read<uint16_t>()));
        break;
      case GgufType::kInt16:
        value = JsonValue(static_cast<int64_t>(reader_.read<int16_t>()));
        break;
      case GgufType::kUint32:
        value = JsonValue(static_cast<int64_t>(reader_.read<uint32_t>()));
        break;
      case GgufType::kInt32:
        value = JsonValue(static_cast<int64_t>(reader_.read<int32_t>()));
        break;
      case GgufType::kUint64:
        value = JsonValue(reader_.read<uint64_t>());
        break;
      case GgufType::kInt64:
        value = JsonValue(reader_.read<int64_t>());
        break;
      case GgufType::kFloat32:
        value = JsonValue(shortest_decimal(reader_.read<float>()));
        break;
      case GgufType::kFloat64:
        value = JsonValue(reader_.read<double>());
        break;
      case GgufType::kBool: {
        const auto byte = reader_.read<uint8_t>();
        if (byte > 1) return error("{} is a boolean of value {}; it must be 0 or 1", what, byte);
        value = JsonValue(byte == 1);
        break;
      }
      case GgufType::kString: {
        PLOW_TRY(std::string text, read_string(what, kMaxStringBytes));
        value = JsonValue(std::move(text));
        break;
      }
      default:
        return error("{} has the type {}, which GGUF does not have", what, static_cast<uint32_t>(type));
    }
    if (!reader_.ok()) return cut_short(what);
    return value;
  }

  // Walks an array, which may hold arrays, and checks that all of it lies in the file.
  Status read_array(const std::string& what, uint32_t depth, GgufArray& array) {
    if (depth > kMaxArrayDepth) return error("{} nests arrays deeper than {}", what, kMaxArrayDepth);
    array.element = static_cast<GgufType>(reader_.read<uint32_t>());
    array.count = reader_.read<uint64_t>();
    if (!reader_.ok()) return cut_short(what);
    const size_t begin = reader_.position();
    if (array.element == GgufType::kString) {
      for (uint64_t i = 0; i < array.count && reader_.ok(); ++i) reader_.read_bytes(reader_.read<uint64_t>());
    } else if (array.element == GgufType::kArray) {
      GgufArray inner;
      for (uint64_t i = 0; i < array.count; ++i) PLOW_TRY_STATUS(read_array(what, depth + 1, inner));
    } else {
      const size_t size = scalar_bytes(array.element);
      if (size == 0)
        return error("{} is an array of the type {}, which GGUF does not have", what,
                     static_cast<uint32_t>(array.element));
      if (array.count > reader_.remaining() / size)
        return error("{} claims {} elements, more than the file can hold", what, array.count);
      reader_.read_bytes(array.count * size);
    }
    if (!reader_.ok()) return cut_short(what);
    array.bytes = file_.subspan(begin, reader_.position() - begin);
    return {};
  }

  Status read_alignment() {
    if (const JsonValue* parts = gguf_.metadata.find("split.count");
        parts != nullptr && parts->as_uint().value_or(2) > 1) {
      return error("is one of {} parts; join them first (gguf-split --merge)", parts->brief());
    }
    const JsonValue* alignment = gguf_.metadata.find("general.alignment");
    if (alignment == nullptr) return {};
    const auto value = alignment->as_uint();
    if (!value || !std::has_single_bit(*value) || *value > (uint64_t{1} << 30)) {
      return error("'general.alignment' must be a power of two, found {}", alignment->brief());
    }
    alignment_ = *value;
    return {};
  }

  Status read_tensor(std::vector<Extent>& extents) {
    GgufTensor tensor;
    PLOW_TRY(tensor.name, read_string("a tensor's name", kMaxNameBytes));
    if (!names_.insert(tensor.name).second) return error("there are two tensors named '{}'", tensor.name);
    const auto n_dimensions = reader_.read<uint32_t>();
    if (n_dimensions > kMaxDimensions) {
      return error("tensor '{}' has {} dimensions; GGUF allows {}", tensor.name, n_dimensions,
                   kMaxDimensions);
    }
    uint64_t values = 1;
    for (uint32_t i = 0; i < n_dimensions; ++i) {
      const auto dimension = reader_.read<uint64_t>();
      if (!reader_.ok()) break;
      if (dimension == 0 || dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / values) {
        return error("tensor '{}' has a dimension of {}", tensor.name, dimension);
      }
      values *= dimension;
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(dimension));
    }
    const auto type = reader_.read<uint32_t>();
    const auto offset = reader_.read<uint64_t>();
    if (!reader_.ok()) return cut_short("the description of tensor '" + tensor.name + "'");
    PLOW_TRY(tensor.dtype, read_type(type, tensor));
    const auto& info = dtype_info(tensor.dtype);
    if (offset % alignment_ != 0) {
      return error("tensor '{}' begins at {}, which is no multiple of the alignment {}", tensor.name, offset,
                   alignment_);
    }
    // In blocks first: the product of values and bytes could pass 64 bits.
    const uint64_t blocks = values / info.block_values;
    if (blocks > file_.size() / info.block_bytes) {
      return error("tensor '{}' has {} values, more than the file can hold", tensor.name, values);
    }
    extents.push_back({offset, blocks * info.block_bytes, gguf_.tensors.size()});
    gguf_.tensors.push_back(std::move(tensor));
    return {};
  }

  Result<StoredDType> read_type(uint32_t number, const GgufTensor& tensor) const {
    for (const auto& type : kGgmlTypes) {
      if (type.number != number) continue;
      if (!type.dtype) {
        return error(
            "tensor '{}' has the type {}, which is not supported; quantise to Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, "
            "Q4_K, Q5_K or Q6_K",
            tensor.name, type.name);
      }
      const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
      if (row % dtype_info(*type.dtype).block_values != 0) {
        return error("tensor '{}' has rows of {} values, no multiple of the {} that a block of {} holds",
                     tensor.name, row, dtype_info(*type.dtype).block_values, type.name);
      }
      return *type.dtype;
    }
    return error("tensor '{}' has the type number {}, which is unknown", tensor.name, number);
  }

  Status place_tensors(std::vector<Extent>& extents) {
    const uint64_t data_at = (reader_.position() + alignment_ - 1) / alignment_ * alignment_;
    const uint64_t data_bytes = data_at < file_.size() ? file_.size() - data_at : 0;
    std::sort(extents.begin(), extents.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    uint64_t end_before = 0;
    for (size_t i = 0; i < extents.size(); ++i) {
      const Extent& extent = extents[i];
      GgufTensor& tensor = gguf_.tensors[extent.tensor];
      if (extent.begin > data_bytes || extent.size > data_bytes - extent.begin) {
        return error(
            "tensor '{}' has {} bytes at {} of the data, but the file has {} (is the download complete?)",
            tensor.name, extent.size, extent.begin, data_bytes);
      }
      if (extent.begin < end_before) {
        return error("tensors '{}' and '{}' overlap", gguf_.tensors[extents[i - 1].tensor].name, tensor.name);
      }
      end_before = extent.begin + extent.size;
      tensor.offset_bytes = data_at + extent.begin;
      tensor.bytes = file_.subspan(tensor.offset_bytes, extent.size);
    }
    return {};
  }

  std::span<const std::byte> file_;
  ByteReader reader_;
  const std::string& source_;
  uint64_t n_tensors_ = 0;
  uint64_t n_metadata_ = 0;
  uint64_t alignment_ = kDefaultAlignment;
  JsonValue::Object scalars_;
  std::unordered_set<std::string> keys_;
  std::unordered_set<std::string> names_;
  GgufFile gguf_;
};

}  // namespace

Result<GgufArray> GgufFile::array_of(const std::string& key, GgufType type, const std::string& source) const {
  const auto at = arrays.find(key);
  if (at == arrays.end()) {
    if (metadata.find(key) != nullptr)
      return input_error(fmt::format("{}: '{}' must be an array", source, key));
    return GgufArray{type, 0, {}};
  }
  if (at->second.element != type) {
    return input_error(fmt::format("{}: '{}' must be an array of type {}, found type {}", source, key,
                                   static_cast<uint32_t>(type), static_cast<uint32_t>(at->second.element)));
  }
  return at->second;
}

Result<GgufStrings> GgufFile::strings(const std::string& key, const std::string& source) const {
  PLOW_TRY(const GgufArray array, array_of(key, GgufType::kString, source));
  return GgufStrings(array.bytes, array.count);
}

Result<GgufFile> read_gguf(std::span<const std::byte> file, const std::string& source) {
  return Parser(file, source).parse();
}

}  // namespace plow
