// plowc's main work: says what it will do, compiles, says what came out.
#pragma once

#include "base/error.h"
#include "compile/pipeline.h"

namespace plow {

// `json`: events on stdout, one object a line, instead of text for people.
Status compile_command(const CompileOptions& options, bool json);

}  // namespace plow
