#include "runtime/dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plow {

Dispatcher::Dispatcher(Engine engine, const DispatchOptions& options)
    : engine_(std::move(engine)), batcher_(engine_, options.batch), queue_(options.queue) {
  status_.counts = batcher_.counts();
  status_.since = std::chrono::steady_clock::now();
  thread_ = std::thread([this] { loop(); });
}

Dispatcher::~Dispatcher() { stop(); }

void Dispatcher::stop() {
  {
    const std::lock_guard lock(mutex_);
    mail_.stop = true;
    status_.draining = true;
  }
  mail_came_.notify_one();
  if (thread_.joinable()) thread_.join();
}

std::variant<std::vector<uint64_t>, Refused> Dispatcher::ask(std::vector<AnswerRequest> requests,
                                                             uint64_t first_id) {
  for (const AnswerRequest& request : requests) {
    if (const Status status = batcher_.check(request); !status.ok())
      return Refused{Refusal::kInvalid, status.error().message};
  }
  const size_t most = size_t{queue_} + engine_.n_slots();
  if (requests.size() > most) {
    return Refused{
        Refusal::kInvalid,
        fmt::format("{} answers were asked for at once; {} can run and wait here.", requests.size(), most)};
  }
  std::vector<uint64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    if (status_.draining) {
      return Refused{Refusal::kDraining, "The server is shutting down and takes no more requests."};
    }
    const size_t waiting = status_.counts.waiting + mail_.asked.size();
    const size_t places = engine_.n_slots() - std::min(engine_.n_slots(), status_.counts.running);
    if (waiting + requests.size() > queue_ + places) {
      return Refused{Refusal::kQueueFull,
                     fmt::format("{} requests run and {} wait, which is all that may wait. Try again later.",
                                 status_.counts.running, waiting)};
    }
    for (AnswerRequest& request : requests) {
      ids.push_back(first_id + ids.size());
      mail_.asked.push_back({ids.back(), std::move(request)});
    }
    idle_ = false;
  }
  mail_came_.notify_one();
  return ids;
}

void Dispatcher::cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    mail_.cancelled.push_back(id);
  }
  mail_came_.notify_one();
}

bool Dispatcher::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  status_.draining = true;
  return all_ended_.wait_until(lock, deadline, [this] { return idle_ && mail_.asked.empty(); });
}

DispatchStatus Dispatcher::status() const {
  const std::lock_guard lock(mutex_);
  DispatchStatus status = status_;
  status.counts.waiting += static_cast<uint32_t>(mail_.asked.size());
  return status;
}

// What came since the last step; waits for something when there is nothing to run.
Dispatcher::Mail Dispatcher::take_mail() {
  std::unique_lock lock(mutex_);
  if (batcher_.idle()) mail_came_.wait(lock, [this] { return !mail_.empty(); });
  Mail mail = std::exchange(mail_, {});
  // Between here and the batcher they still count as waiting.
  status_.counts.waiting += static_cast<uint32_t>(mail.asked.size());
  return mail;
}

void Dispatcher::publish(bool in_step) {
  const std::lock_guard lock(mutex_);
  status_.counts = batcher_.counts();
  status_.in_step = in_step;
  status_.since = std::chrono::steady_clock::now();
  idle_ = batcher_.idle() && mail_.asked.empty();
  if (idle_) all_ended_.notify_all();
}

void Dispatcher::loop() {
  while (true) {
    Mail mail = take_mail();
    for (Asked& asked : mail.asked) batcher_.add(asked.id, std::move(asked.request));
    for (const uint64_t id : mail.cancelled) batcher_.cancel(id);
    if (mail.stop) {
      batcher_.cancel_all();
      publish(false);
      return;
    }
    publish(!batcher_.idle());
    if (batcher_.idle()) continue;
    batcher_.run_step();
    publish(false);
  }
}

}  // namespace plow
