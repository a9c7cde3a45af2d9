#include "text/chat_template/strftime.h"

#include "text/chat_template/budget.h"

#include <fmt/format.h>

#include <array>

namespace plow::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {"January",   "February", "March",    "April",
                                                      "May",       "June",     "July",     "August",
                                                      "September", "October",  "November", "December"};

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

// Days from the first of January.
int day_of_year(const LocalTime& t) {
  constexpr std::array<int, 12> kBefore = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  return kBefore[static_cast<size_t>(t.month - 1)] + (t.month > 2 && is_leap(t.year) ? 1 : 0) + t.day - 1;
}

// 0 is Sunday: the first of January of year 1 was a Monday.
int weekday_of_january_first(int year) {
  const int before = year - 1;
  return (1 + before * 365 + before / 4 - before / 100 + before / 400) % 7;
}

class TimeFormatter {
 public:
  explicit TimeFormatter(const LocalTime& time)
      : t_(time),
        year_day_(day_of_year(time)),
        weekday_((weekday_of_january_first(time.year) + year_day_) % 7) {}

  std::string run(std::string_view format) {
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%' || i + 1 == format.size()) {
        out += format[i];
        continue;
      }
      ++i;
      const bool unpadded = format[i] == '-' && i + 1 < format.size();  // glibc's %-d
      if (unpadded) ++i;
      out += directive(format[i], unpadded);
    }
    return out;
  }

 private:
  static std::string number(int value, int width, bool unpadded) {
    return unpadded ? fmt::format("{}", value) : fmt::format("{:0{}}", value, width);
  }
  static std::string spaced(int value, bool unpadded) {
    return unpadded ? fmt::format("{}", value) : fmt::format("{:2}", value);
  }

  int hour12() const { return t_.hour % 12 == 0 ? 12 : t_.hour % 12; }

  // The ISO 8601 week, and the year that it belongs to.
  struct IsoWeek {
    int year = 0;
    int week = 0;
  };
  IsoWeek iso_week() const {
    const int monday_based = (weekday_ + 6) % 7;
    const int week = (year_day_ - monday_based + 10) / 7;
    if (week < 1) return {t_.year - 1, weeks_in(t_.year - 1)};
    if (week > weeks_in(t_.year)) return {t_.year + 1, 1};
    return {t_.year, week};
  }
  static int weeks_in(int year) {
    const int first = weekday_of_january_first(year);
    return first == 4 || (first == 3 && is_leap(year)) ? 53 : 52;
  }

  std::string directive(char c, bool unpadded) {
    switch (c) {
      case 'a':
        return std::string(kDays[static_cast<size_t>(weekday_)].substr(0, 3));
      case 'A':
        return std::string(kDays[static_cast<size_t>(weekday_)]);
      case 'b':
      case 'h':
        return std::string(kMonths[static_cast<size_t>(t_.month - 1)].substr(0, 3));
      case 'B':
        return std::string(kMonths[static_cast<size_t>(t_.month - 1)]);
      case 'c':
        return run("%a %b %e %H:%M:%S %Y");
      case 'C':
        return number(t_.year / 100, 2, unpadded);
      case 'd':
        return number(t_.day, 2, unpadded);
      case 'D':
      case 'x':
        return run("%m/%d/%y");
      case 'e':
        return spaced(t_.day, unpadded);
      case 'f':
        return number(t_.microsecond, 6, false);
      case 'F':
        return run("%Y-%m-%d");
      case 'g':
        return number(iso_week().year % 100, 2, unpadded);
      case 'G':
        return number(iso_week().year, 4, true);
      case 'H':
        return number(t_.hour, 2, unpadded);
      case 'I':
        return number(hour12(), 2, unpadded);
      case 'j':
        return number(year_day_ + 1, 3, unpadded);
      case 'k':
        return spaced(t_.hour, unpadded);
      case 'l':
        return spaced(hour12(), unpadded);
      case 'm':
        return number(t_.month, 2, unpadded);
      case 'M':
        return number(t_.minute, 2, unpadded);
      case 'n':
        return "\n";
      case 'p':
        return t_.hour < 12 ? "AM" : "PM";
      case 'P':
        return t_.hour < 12 ? "am" : "pm";
      case 'r':
        return run("%I:%M:%S %p");
      case 'R':
        return run("%H:%M");
      case 'S':
        return number(t_.second, 2, unpadded);
      case 't':
        return "\t";
      case 'T':
      case 'X':
        return run("%H:%M:%S");
      case 'u':
        return number(weekday_ == 0 ? 7 : weekday_, 1, true);
      case 'U':
        return number((year_day_ + 7 - weekday_) / 7, 2, unpadded);
      case 'V':
        return number(iso_week().week, 2, unpadded);
      case 'w':
        return number(weekday_, 1, true);
      case 'W':
        return number((year_day_ + 7 - (weekday_ + 6) % 7) / 7, 2, unpadded);
      case 'y':
        return number(t_.year % 100, 2, unpadded);
      case 'Y':
        return number(t_.year, 4, true);
      case 'z':
      case 'Z':
        return "";  // the time has no zone
      case '%':
        return "%";
      default:
        fail(fmt::format("strftime_now does not know the directive '%{}'", c));
    }
  }

  LocalTime t_;
  int year_day_;
  int weekday_;
};

}  // namespace

std::string format_time(const LocalTime& t, std::string_view format) {
  constexpr std::array<int, 12> kDaysIn = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool valid = t.year >= 1 && t.year <= 9999 && t.month >= 1 && t.month <= 12 && t.day >= 1 &&
                     t.day <= kDaysIn[static_cast<size_t>(t.month - 1)] &&
                     (t.month != 2 || t.day < 29 || is_leap(t.year)) && t.hour >= 0 && t.hour < 24 &&
                     t.minute >= 0 && t.minute < 60 && t.second >= 0 && t.second <= 60 &&
                     t.microsecond >= 0 && t.microsecond < 1'000'000;
  if (!valid) fail("the caller's time is not one that a calendar has");
  constexpr size_t kMaxFormat = 4096;
  if (format.size() > kMaxFormat) fail("the format of strftime_now is too long");
  return TimeFormatter(t).run(format);
}

}  // namespace plow::jinja
