#include "console/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace plow {

namespace {

// The one global of the programs: a signal handler has no other way to speak.
std::atomic<int> g_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "the handler may only touch lock-free state");

void on_signal(int number) {
  if (g_signal.exchange(number) != 0) ::_exit(128 + number);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a read from the terminal returns, so that chat can ask again
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupted() { return g_signal.load(); }
void clear_interrupt() { g_signal.store(0); }

}  // namespace plow
