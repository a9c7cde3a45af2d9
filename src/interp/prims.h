// What the interpreter and the bodies need of an instruction set `I`: one concept a capability, so that what
// is missing is named. `I` is a type of static functions (isa/x86_64/prims_*.h). A Vec is 16 floats, whatever
// registers they lie in.
#pragma once

#include "interp/device.h"

namespace plow::dev {

// Counters: acquire loads and release adds on 32-bit words.
template <class I>
concept HasCounters = requires(uint32_t* word, const uint32_t* read, uint32_t value) {
  I::load_acquire(read);  // -> uint32_t
  I::poll(read);          // -> uint32_t: like load_acquire, but what it orders is ordered from polled() on
  I::polled();
  I::store_release(word, value);
  I::store_relaxed(word, value);
  I::add_release(word, value);
  I::set_if_zero(word, value);  // -> bool: it was zero and is now `value`
};

// A wait that does not starve the others: pause a few cycles; give the processor to another thread.
template <class I>
concept HasSpin = requires {
  I::pause();
  I::yield();
};

// Words that device and host share.
template <class I>
concept HasSystemWords = requires(uint32_t* word, const uint32_t* read, uint32_t value) {
  I::load_acquire_system(read);  // -> uint32_t
  I::store_release_system(word, value);
};

template <class I>
concept HasClock = requires {
  I::clock_ns();
};  // -> uint64_t, monotonic

// A worker is one thread on a CPU and a team of threads on a GPU, which run the loop together.
template <class I>
concept HasTeam = requires(uint32_t value) {
  I::thread();     // -> uint32_t: 0 .. n_threads() - 1
  I::n_threads();  // -> uint32_t
  I::settle();  // returns when every thread of the team has come here; what they wrote before is seen by all
                // after
  I::agree(value);  // -> uint32_t: settle(), and the value that thread 0 gave
  I::all(true);     // -> bool: settle(), and whether all gave true
};

// Only where a worker that waits brings weights nearer itself (stream.h).
template <class I>
concept HasPrefetch = requires(const void* line) {
  I::prefetch(line);
};

// Arithmetic on Vec. reduce_add and reduce_max combine lane i with lane i + 8, then + 4, + 2, + 1, on every
// instruction set alike.
template <class I>
concept HasVectors = requires(typename I::Vec v, typename I::Mask m, const float* f, float* out, uint32_t n) {
  I::zero();
  I::set(1.0f);
  I::load(f);
  I::load_n(f, n);  // lanes from n on are 0 and are not read
  I::store(out, v);
  I::store_n(out, v, n);  // lanes from n on are not written
  I::add(v, v);
  I::sub(v, v);
  I::mul(v, v);
  I::div(v, v);
  I::fma(v, v, v);  // a * b + c, rounded once
  I::max(v, v);
  I::min(v, v);
  I::abs(v);
  I::copy_sign(v, v);    // magnitude of the first, sign of the second
  I::round(v);           // to nearest, ties to even; below 2^22
  I::times_power(v, v);  // a * 2^b for integral b in [-126, 127]
  I::less(v, v);         // -> Mask
  I::lanes_below(n);     // -> Mask: lane < n
  I::mask_bits(m);       // -> uint32_t: bit i is lane i
  I::select(m, v, v);    // m ? a : b
  I::reduce_add(v);      // -> float
  I::reduce_max(v);      // -> float
};

// Narrow formats, and weights in Layout::kRows16Pairs: 16 rows of a column pair.
template <class I>
concept HasNarrowLoads = requires(const Bf16* b, Bf16* out, const F16* h, const float* f, typename I::Vec v,
                                  uint32_t n) {
  I::load(b);
  I::load_n(b, n);
  I::load(h);
  I::load_n(h, n);
  I::store(out, v);  // rounds to nearest, ties to even
  I::store_n(out, v, n);
  I::load_even(b);  // of a line of 16 rows' column pairs: the even column
  I::load_even(h);
  I::load_even(f);
  I::load_odd(b);
  I::load_odd(h);
  I::load_odd(f);
};

// Dot products of bf16 pairs: acc + a.even * b.even + a.odd * b.odd, where b is one pair for all 16 rows.
template <class I>
concept HasPairDot = requires(typename I::Vec acc, const Bf16* line, uint32_t pair) {
  I::dot_pair(acc, line, pair);
};

// Integers of 16 rows, for products with matrices of blocks (Layout::kRows16Blocks): Words is 16 times a pair
// of 16-bit integers, or a sum of 32 bits.
template <class I>
concept HasWords = requires(typename I::Words w, const unsigned char* line, uint32_t* out, uint32_t pair,
                            int32_t sum, typename I::Vec v) {
  I::set_words(sum);          // in every row
  I::dot_words(w, w, pair);   // acc + a.even * b.even + a.odd * b.odd, where b is one pair for all rows
  I::words_to_floats(w);      // -> Vec, rounded to nearest
  I::load_bytes(line);        // a line of 32 signed bytes, widened
  I::load_low_halves(line);   // the low 4 bits of each of 32 bytes, widened
  I::load_high_halves(line);  // the high 4 bits
  I::store_words(out, v, v);  // rounds 32 floats below 2^15 to nearest and writes them as 16-bit integers
};

// Scalar functions of double that bodies call a few times a row.
template <class I>
concept HasScalarMath = requires(double x, double* out, float f) {
  I::sin_cos(x, out, out);
  I::log(x);
  I::sqrt(f);
};

// What the loop needs of whoever plays it.
template <class I>
concept IsWorker = HasCounters<I> && HasSpin<I> && HasClock<I> && HasTeam<I>;

template <class I>
concept IsIsa = IsWorker<I> && HasPrefetch<I> && HasVectors<I> && HasNarrowLoads<I> && HasWords<I> &&
    HasScalarMath<I> && requires {
  I::kRowBlock;      // rows of activations that a register-blocked loop takes at once
  I::kWordRowBlock;  // the same of a loop over Words
  I::kAccumulators;  // Vecs that such a loop may sum in when it takes several row groups at once
};

}  // namespace plow::dev
