// /openapi.json: OpenAPI 3.1, made of the tables that validate and route.
#pragma once

#include <string>
#include <string_view>

namespace plow {

std::string openapi_document(std::string_view version);

}  // namespace plow
