// Arbitrary templates rendered with a conversation that the input chooses too: the template up to the first
// zero byte, behind it the contents of the messages. Beyond not crashing: the segments alternate, trusted
// ones hold no byte of the contents, and what renders once renders the same again.
#include "base/check.h"
#include "text/chat_template/chat_template.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// Every content is made of this character alone, so that its bytes are recognised wherever they go.
constexpr std::string_view kMark = "\u16a0";

plow::ChatInput make_input(std::string_view choices) {
  constexpr size_t kMaxMessages = 6;
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool", "other"};
  plow::ChatInput input;
  boost::json::array messages;
  for (size_t i = 0; i < std::min(choices.size() + 1, kMaxMessages); ++i) {
    const auto choice = static_cast<unsigned char>(i < choices.size() ? choices[i] : 1);
    std::string content;
    for (int n = choice % 5; n > 0; --n) content += kMark;
    boost::json::object message = {{"role", kRoles[choice % 5]}, {"content", content}};
    if (choice & 0x20) message["content"] = boost::json::array{{{"type", "text"}, {"text", content}}};
    if (choice & 0x40) {
      message["tool_calls"] =
          boost::json::array{{{"function", {{"name", content}, {"arguments", {{content, content}}}}}}};
    }
    messages.push_back(message);
  }
  input.messages = messages;
  input.variables = {
      {"x", std::string(kMark)}, {"n", 3}, {"f", 1.5}, {"l", {1, nullptr, true}}, {"d", {{"a", 1}}}};
  input.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  input.now = plow::LocalTime{2026, 3, 7, 9, 5, 4, 6};
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const std::string_view source = bytes.substr(0, end);
  const auto chat_template = plow::ChatTemplate::compile(source);
  if (!chat_template.ok()) return 0;

  plow::RenderLimits limits;
  limits.max_steps = 20'000;
  limits.max_memory_bytes = uint64_t{4} << 20;
  limits.max_string_bytes = uint64_t{1} << 20;
  const plow::ChatInput input = make_input(bytes.substr(std::min(end + 1, bytes.size())));
  const auto segments = chat_template->render_segments(input, limits);
  const auto text = chat_template->render(input, limits);
  PLOW_CHECK(segments.ok() == text.ok(), "one of render and render_segments fails");
  if (!segments.ok()) {
    PLOW_CHECK(segments.error().message == text.error().message, "two errors for one template");
    return 0;
  }
  std::string joined;
  const bool template_has_mark =
      source.find(kMark) != std::string_view::npos || source.find("\\u16") != std::string_view::npos;
  for (size_t i = 0; i < segments->size(); ++i) {
    const plow::PromptSegment& segment = (*segments)[i];
    PLOW_CHECK(!segment.text.empty() && (i == 0 || segment.trusted != (*segments)[i - 1].trusted),
               "segments");
    PLOW_CHECK(!segment.trusted || template_has_mark || segment.text.find(kMark) == std::string::npos,
               "text of the conversation is trusted");
    joined += segment.text;
  }
  PLOW_CHECK(joined == *text, "the segments are not the text");
  return 0;
}
