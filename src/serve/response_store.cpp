#include "serve/response_store.h"

#include <utility>

namespace plow {

void ResponseStore::put(const std::string& id, Stored stored) {
  const std::lock_guard lock(mutex_);
  const auto forget = [&](std::list<Entry>::iterator entry) {
    bytes_ -= entry->bytes();
    by_id_.erase(entry->id);
    entries_.erase(entry);
  };
  // A client may choose the id of its request, and with it this one.
  if (const auto same = by_id_.find(id); same != by_id_.end()) forget(same->second);
  entries_.push_back({id, std::move(stored)});
  by_id_[id] = std::prev(entries_.end());
  bytes_ += entries_.back().bytes();
  while (!entries_.empty() && (entries_.size() > most_responses_ || bytes_ > most_bytes_))
    forget(entries_.begin());
}

std::optional<ResponseStore::Stored> ResponseStore::find(std::string_view id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(std::string(id));
  if (found == by_id_.end()) return std::nullopt;
  return found->second->stored;
}

}  // namespace plow
