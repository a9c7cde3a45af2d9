#include "console/progress_bar.h"

#include "base/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace plow {

namespace {

constexpr int kBarColumns = 24;
// A terminal shows no more than this many frames a second that an eye can tell apart, and drawing costs
// system calls.
constexpr std::chrono::milliseconds kRedrawEvery{80};
// A rate over less time is noise.
constexpr double kRateAfterSeconds = 0.3;

std::string amount(double value, ProgressUnit unit) {
  return unit == ProgressUnit::kBytes ? format_bytes(value) : fmt::format("{:.0f}", value);
}

std::string bar(double share) {
  const int filled = static_cast<int>(std::floor(share * kBarColumns));
  std::string text = "[";
  for (int i = 0; i < kBarColumns; ++i) text += i < filled ? '=' : (i == filled ? '>' : ' ');
  return text + "]";
}

std::string time_left(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02} left", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02} left", whole / 60, whole % 60);
}

}  // namespace

std::string render_progress(const ProgressState& state, int width) {
  const size_t columns = static_cast<size_t>(std::max(width, 1));
  const double done = static_cast<double>(state.done);
  const double total = static_cast<double>(state.total);
  std::vector<std::string> parts = {fmt::format("{:<9}", state.label)};
  if (state.total > 0) {
    const double share = std::min(done / total, 1.0);
    parts.push_back(fmt::format("{:3.0f}%", std::floor(share * 100)));
    parts.push_back(bar(share));
    parts.push_back(fmt::format("{} of {}", amount(done, state.unit), amount(total, state.unit)));
  } else {
    parts.push_back(amount(done, state.unit));
  }
  const double rate = state.seconds > kRateAfterSeconds ? done / state.seconds : 0;
  if (rate > 0) {
    parts.push_back(amount(rate, state.unit) + "/s");
    if (state.total > state.done) parts.push_back(time_left((total - done) / rate));
  }
  std::string line = parts[0];
  for (size_t i = 1; i < parts.size() && line.size() + 1 + parts[i].size() <= columns; ++i)
    line += " " + parts[i];
  return line.substr(0, columns);
}

std::string render_stage_done(const ProgressState& state) {
  const std::string what = state.unit == ProgressUnit::kBytes && state.total > 0
                               ? format_bytes(static_cast<double>(state.total))
                               : std::string();
  std::string line = fmt::format("  {:<12} {:>9}  {}", state.label, format_ns(state.seconds * 1e9), what);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void ProgressBar::update(const std::string& label, uint64_t done, uint64_t total, ProgressUnit unit) {
  const auto now = Clock::now();
  if (label != state_.label) {
    finish();
    state_.label = label;
    begin_ = now;
    drawn_ = now - kRedrawEvery;
  }
  state_.done = done;
  state_.total = total;
  state_.unit = unit;
  state_.seconds = std::chrono::duration<double>(now - begin_).count();
  if (terminal_.interactive && now - drawn_ >= kRedrawEvery) {
    drawn_ = now;
    draw();
  }
}

void ProgressBar::finish() {
  if (state_.label.empty()) return;
  clear();
  state_.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  if (keep_lines_) {
    fmt::print(stream_, "{}\n", render_stage_done(state_));
    std::fflush(stream_);
  }
  state_ = {};
}

void ProgressBar::draw() {
  // The last column stays free: writing there makes some terminals wrap.
  fmt::print(stream_, "\r\033[K{}", render_progress(state_, terminal_.width - 1));
  std::fflush(stream_);
  on_screen_ = true;
}

void ProgressBar::clear() {
  if (!on_screen_) return;
  fmt::print(stream_, "\r\033[K");
  std::fflush(stream_);
  on_screen_ = false;
}

}  // namespace plow
