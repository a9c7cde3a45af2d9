// plowc explain and plowc viz: bundles as texts and as a page.
#pragma once

#include "base/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace plow {

// The stages that explain shows, in the order of the road.
const std::vector<std::string>& stage_names();

// Prints the text of one stage. REQUIRES a name of stage_names().
Status explain_stage(const std::filesystem::path& bundle, const std::string& stage);

// `packet` is PROGRAM:PACKET as the page and disasm number them, or PROGRAM:WORKER:INDEX as a fault reports
// it.
Status explain_why(const std::filesystem::path& bundle, const std::string& packet);

// Compares stage by stage and stops at the first that differs. 0: no difference, 1: one, as diff(1) does.
Result<int> explain_diff(const std::filesystem::path& a, const std::filesystem::path& b);

Status write_viz(const std::filesystem::path& bundle, const std::filesystem::path& page);

}  // namespace plow
