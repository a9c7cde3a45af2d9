// What a step of a program has to read and to multiply, from the bundle's tables: the floor under its time.
#pragma once

#include "bundle/bundle.h"

#include <cstdint>

namespace plow {

struct StepWork {
  double weight_bytes = 0;   // of the tape, read once whatever the number of rows; the rows of the embedding
                             // table that are picked are not counted
  double flops_per_row = 0;  // of the matrix products
  double flops_per_sample = 0;  // more, for each row that picks a token
};
StepWork step_work(const ProgramView& program);

// Bytes of keys and values that one row at the given position reads, its own included.
double kv_bytes_read(const BundleFile& bundle, uint32_t position);

}  // namespace plow
