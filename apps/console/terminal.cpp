#include "console/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace plow {

namespace {

std::optional<int> columns_from_environment() {
  const char* columns = std::getenv("COLUMNS");
  if (columns == nullptr) return std::nullopt;
  int width = 0;
  const auto [end, error] = std::from_chars(columns, columns + std::strlen(columns), width);
  if (error != std::errc{} || *end != '\0' || width <= 0) return std::nullopt;
  return width;
}

// Select Graphic Rendition, ECMA-48 section 8.3.117.
std::string styled(bool colour, int code, std::string_view text) {
  if (!colour) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

}  // namespace

Terminal Terminal::of(int fd) {
  Terminal terminal;
  const char* type = std::getenv("TERM");
  const bool dumb = type != nullptr && std::strcmp(type, "dumb") == 0;
  terminal.interactive = ::isatty(fd) == 1 && !dumb;
  const char* no_colour = std::getenv("NO_COLOR");
  terminal.colour = terminal.interactive && (no_colour == nullptr || *no_colour == '\0');
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  if (const auto columns = columns_from_environment()) terminal.width = *columns;
  return terminal;
}

std::string Terminal::bold(std::string_view text) const { return styled(colour, 1, text); }
std::string Terminal::dim(std::string_view text) const { return styled(colour, 2, text); }
std::string Terminal::red(std::string_view text) const { return styled(colour, 31, text); }

}  // namespace plow
