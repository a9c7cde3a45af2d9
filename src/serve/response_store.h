// What /v1/responses remembers, so that a request can go on from the answer to another: conversations and
// answers by id, in memory. The oldest are forgotten when there are too many or they are too large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace plow {

// Any thread may call it.
class ResponseStore {
 public:
  static constexpr size_t kMostResponses = 1024;
  static constexpr size_t kMostBytes = size_t{64} << 20;  // of conversations and answers as JSON text

  struct Stored {
    std::string conversation;  // the messages of a chat, an array, with the answer as the last
    std::string response;      // as it was sent
  };
  explicit ResponseStore(size_t most_responses = kMostResponses, size_t most_bytes = kMostBytes)
      : most_responses_(most_responses), most_bytes_(most_bytes) {}

  void put(const std::string& id, Stored stored);
  std::optional<Stored> find(std::string_view id) const;

 private:
  struct Entry {
    std::string id;
    Stored stored;
    size_t bytes() const { return id.size() + stored.conversation.size() + stored.response.size(); }
  };
  const size_t most_responses_, most_bytes_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the oldest first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_id_;
  size_t bytes_ = 0;
};

}  // namespace plow
