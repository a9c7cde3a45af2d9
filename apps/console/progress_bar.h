// A progress bar on one line of a terminal: label, bar, share, rate, time left. When the stream is not a
// terminal it prints nothing but one line for each stage that ends, so that a log stays readable.
#pragma once

#include "console/terminal.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace plow {

enum class ProgressUnit { kBytes, kItems };

struct ProgressState {
  std::string label;
  uint64_t done = 0;
  uint64_t total = 0;  // 0: not known
  ProgressUnit unit = ProgressUnit::kItems;
  double seconds = 0;  // since the stage began
};

// The line, at most `width` columns, without colours. What does not fit is left out, from the right: time
// left, rate, bar; then the label is cut.
std::string render_progress(const ProgressState& state, int width);

// The line that stays when a stage is done.
std::string render_stage_done(const ProgressState& state);

class ProgressBar {
 public:
  ProgressBar(std::FILE* stream, Terminal terminal) : stream_(stream), terminal_(terminal) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `done` of `total` in the stage `label`; another label ends the stage before.
  void update(const std::string& label, uint64_t done, uint64_t total, ProgressUnit unit);
  void finish();  // ends the last stage
  // Whether the line of a stage stays when it is done (it does at first).
  void keep_lines(bool keep) { keep_lines_ = keep; }
  void clear();  // takes the bar off the screen, for an error message

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  std::FILE* stream_;
  Terminal terminal_;
  ProgressState state_;
  Clock::time_point begin_, drawn_;
  bool on_screen_ = false;
  bool keep_lines_ = true;
};

}  // namespace plow
