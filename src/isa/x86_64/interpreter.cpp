#include "isa/x86_64/interpreter.h"

#include "isa/x86_64/geometry.h"

#include <cpuid.h>
#include <fmt/format.h>

namespace plow {
namespace x86_64 {

#define PLOW_X86_64_LEVEL(Name, text)                                                    \
  bool run_steps_##Name(Worker& worker);                                                 \
  void run_body_##Name(const BodyContext& ctx, const Packet& packet, uint32_t row_tile); \
  void vector_math_##Name(uint32_t function, const float* x, float* out);
#include "isa/x86_64/levels.def"

}  // namespace x86_64

namespace {

constexpr Interpreter kInterpreters[] = {
#define PLOW_X86_64_LEVEL(Name, text) \
  {IsaLevel::k##Name, x86_64::run_steps_##Name, x86_64::run_body_##Name, x86_64::vector_math_##Name},
#include "isa/x86_64/levels.def"
};

// Clang 14, which builds the fuzz targets, has no __builtin_cpu_supports("f16c").
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

bool available(IsaLevel level) {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  switch (level) {
    case IsaLevel::kAuto:
      return false;
    case IsaLevel::kAvx2:
      return avx2;
    case IsaLevel::kAvx512:
      return avx512;
    case IsaLevel::kAvx512Bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni");
  }
  return false;
}

}  // namespace

const char* isa_level_name(IsaLevel level) {
  switch (level) {
    case IsaLevel::kAuto:
      return "auto";
#define PLOW_X86_64_LEVEL(Name, text) \
  case IsaLevel::k##Name:             \
    return text;
#include "isa/x86_64/levels.def"
  }
  return nullptr;
}

Result<IsaLevel> parse_isa_level(std::string_view text) {
  std::string known = "auto";
  if (text == "auto") return IsaLevel::kAuto;
#define PLOW_X86_64_LEVEL(Name, level_text)         \
  if (text == level_text) return IsaLevel::k##Name; \
  known += std::string(", ") + level_text;
#include "isa/x86_64/levels.def"
  return usage_error(fmt::format("'{}' is not an instruction set level; choose one of {}.", text, known));
}

std::vector<IsaLevel> available_isa_levels() {
  std::vector<IsaLevel> levels;
  for (const Interpreter& interpreter : kInterpreters) {
    if (available(interpreter.level)) levels.push_back(interpreter.level);
  }
  return levels;
}

Result<IsaLevel> choose_isa_level(IsaLevel wanted) {
  if (wanted == IsaLevel::kAuto) wanted = available(IsaLevel::kAvx512) ? IsaLevel::kAvx512 : IsaLevel::kAvx2;
  if (available(wanted)) return wanted;
  std::string have;
  for (IsaLevel level : available_isa_levels())
    have += (have.empty() ? "" : ", ") + std::string(isa_level_name(level));
  return device_error(
      fmt::format("This processor cannot run {} code (it has: {}). Choose another level or another machine.",
                  isa_level_name(wanted), have.empty() ? "none of the levels that plow needs" : have));
}

const Interpreter& x86_64_interpreter(IsaLevel level) {
  PLOW_CHECK(available(level), "the level {} is not available here", isa_level_name(level));
  return kInterpreters[static_cast<size_t>(level) - 1];
}

}  // namespace plow
