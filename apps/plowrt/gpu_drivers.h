// What GPU drivers this machine has, found with dlopen: plowrt links none. Each says in a sentence what is
// there, or what is missing.
#pragma once

#include <string>

namespace plow {

std::string describe_cuda_driver();
std::string describe_hsa_runtime();

}  // namespace plow
