// Errors that a user can cause. Three kinds of failure are kept apart:
//  - input errors (a checkpoint, a flag, a bundle, a request): Result<T>, with a message that says what is wrong, where,
//    why, and what to do next;
//  - bugs of ours: PLOW_CHECK (check.h), which aborts;
//  - faults of a device: a status word that the runtime turns into a failed request, which is a Result again.
// Libraries do not print and do not exit, and no exception crosses the border of a library.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace plow {

// The class of an error is the exit code of the program that reports it.
enum class ErrorClass : int {
  kUsage = 2,         // the command line is wrong
  kInput = 3,         // a file or a request is wrong
  kDoesNotFit = 4,    // memory, disk or context is too small
  kDevice = 5,        // a device failed, or the one asked for is not there
  kVerification = 6,  // a product did not pass its verifier
};

struct Error {
  ErrorClass error_class = ErrorClass::kInput;
  std::string message;  // whole sentences: what, where, why, what next

  // The same error with where it happened put in front ("FILE: message").
  Error at(const std::string& where) const { return {error_class, where + ": " + message}; }
};

inline Error usage_error(std::string message) { return {ErrorClass::kUsage, std::move(message)}; }
inline Error input_error(std::string message) { return {ErrorClass::kInput, std::move(message)}; }
inline Error does_not_fit(std::string message) { return {ErrorClass::kDoesNotFit, std::move(message)}; }
inline Error device_error(std::string message) { return {ErrorClass::kDevice, std::move(message)}; }
inline Error verification_error(std::string message) { return {ErrorClass::kVerification, std::move(message)}; }

// A value or an Error. `Result<void>` is Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES ok().
  T& value() & {
    PLOW_CHECK(ok(), "Result holds an error: {}", error().message);
    return std::get<0>(state_);
  }
  const T& value() const& {
    PLOW_CHECK(ok(), "Result holds an error: {}", error().message);
    return std::get<0>(state_);
  }
  T&& value() && {
    PLOW_CHECK(ok(), "Result holds an error: {}", error().message);
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES !ok().
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace plow

#define PLOW_CONCAT_INNER(a, b) a##b
#define PLOW_CONCAT(a, b) PLOW_CONCAT_INNER(a, b)

// PLOW_TRY(auto x, f()): x is f's value, or the enclosing function returns f's error.
#define PLOW_TRY(declaration, ...) PLOW_TRY_IMPL(PLOW_CONCAT(plow_try_, __LINE__), declaration, __VA_ARGS__)
#define PLOW_TRY_IMPL(result, declaration, ...) \
  auto result = (__VA_ARGS__);                  \
  if (!result.ok()) return result.error();      \
  declaration = std::move(result).value()

// PLOW_TRY_STATUS(f()): the enclosing function returns f's error, if there is one.
#define PLOW_TRY_STATUS(...)                                          \
  do {                                                                \
    if (auto plow_status = (__VA_ARGS__); !plow_status.ok()) return plow_status.error(); \
  } while (false)
