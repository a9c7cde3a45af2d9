// Stop strings in text that comes in pieces. A stop string never leaks, not even in part, and no more is held
// back than what may still become one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plow {

class StopMatcher {
 public:
  // REQUIRES that no stop string is empty.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that is certain now. The stop string that is complete first ends it, and of those that are
  // complete at once the one that began first: how the text was cut into pieces does not matter.
  // REQUIRES !stopped().
  std::string push(std::string_view piece);
  // What was held back when no more comes.
  std::string finish();

  bool stopped() const { return stopped_by_ != nullptr; }
  const std::string& stopped_by() const { return *stopped_by_; }  // REQUIRES stopped()

 private:
  size_t maybe_begun() const;

  std::vector<std::string> stops_;
  std::string held_;
  const std::string* stopped_by_ = nullptr;
};

}  // namespace plow
