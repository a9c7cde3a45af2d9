// Words that threads of the host share: the part of the primitives (prims.h) that is the same on every CPU.
// To be inherited from.
#pragma once

#include <stdint.h>

namespace plow::dev {

struct HostWords {
  static uint32_t load_acquire(const uint32_t* word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
  static uint32_t poll(const uint32_t* word) { return load_acquire(word); }
  static void polled() {}
  static void store_release(uint32_t* word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
  }
  static void store_relaxed(uint32_t* word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
  }
  static void add_release(uint32_t* word, uint32_t value) {
    __atomic_fetch_add(word, value, __ATOMIC_RELEASE);
  }
  static bool set_if_zero(uint32_t* word, uint32_t value) {
    uint32_t zero = 0;
    return __atomic_compare_exchange_n(word, &zero, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }
};

}  // namespace plow::dev
