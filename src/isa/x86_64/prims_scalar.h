// The capabilities of x86-64 that do not depend on its vectors: counters, spinning, clock, prefetch, scalar
// functions.
#pragma once

#include "interp/host_words.h"
#include "interp/prims.h"

#include <immintrin.h>
#include <math.h>
#include <sched.h>
#include <time.h>

namespace plow::x86_64 {

// The library functions called here are real calls, never inlined, so nothing of theirs is compiled for one
// instruction set (device.h).
struct ScalarPrims : dev::HostWords {
  static uint32_t thread() { return 0; }
  static uint32_t n_threads() { return 1; }
  static void settle() {}
  static uint32_t agree(uint32_t value) { return value; }
  static bool all(bool value) { return value; }

  static void pause() { _mm_pause(); }
  static void yield() { sched_yield(); }

  static uint64_t clock_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
  }

  static void prefetch(const void* line) { _mm_prefetch(static_cast<const char*>(line), _MM_HINT_T0); }

  static void sin_cos(double x, double* sine, double* cosine) {
    *sine = ::sin(x);
    *cosine = ::cos(x);
  }
  static double log(double x) { return ::log(x); }
  static float sqrt(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
};

}  // namespace plow::x86_64
