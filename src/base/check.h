// PLOW_CHECK(condition, format, args...): an invariant of our own code. When it does not hold the program says which, where,
// and aborts: a compiler that goes on after a broken invariant ships a wrong bundle. Nothing that a user's file or request
// contains may reach a PLOW_CHECK; that is what Result is for (error.h).
#pragma once

#include <fmt/format.h>

#include <string>

namespace plow {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace plow

#define PLOW_CHECK(condition, ...)                                                           \
  do {                                                                                       \
    if (!(condition)) ::plow::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
