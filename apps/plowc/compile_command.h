// plowc's main work: says what it will do, compiles, says what came out.
#pragma once

#include "base/error.h"
#include "compile/pipeline.h"

namespace plow {

// `part_note` says where the plan's part comes from. `json`: events on stdout, one object a line, instead of
// text for people.
Status compile_command(const CompileOptions& options, const std::string& part_note, bool json);

}  // namespace plow
