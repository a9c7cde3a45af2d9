#include "base/byte_reader.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/float16.h"
#include "base/mapped_file.h"
#include "base/release_pages.h"
#include "base/staged_directory.h"
#include "base/testing/temp_dir.h"
#include "base/text_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace plow {
namespace {

namespace fs = std::filesystem;

Result<int> half(int value) {
  if (value % 2 != 0) return input_error("odd");
  return value / 2;
}

Result<int> quarter(int value) {
  PLOW_TRY(const int once, half(value));
  return half(once);
}

TEST(Result, CarriesAValueOrTheFirstError) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_EQ(quarter(6).error().at("here").message, "here: odd");
}

TEST(ByteReader, NeverReadsPastTheEnd) {
  const std::array<std::byte, 5> bytes{std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{7}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.read<uint32_t>(), 1u);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.read<uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_TRUE(reader.read_bytes(~uint64_t{0}).empty());
}

TEST(Float16, EveryF16RoundTripsThroughItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000u; ++bits) {
    const int exponent = static_cast<int>((bits >> 10) & 0x1fu);
    const double mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) continue;
    double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if ((bits & 0x8000u) != 0) expected = -expected;
    EXPECT_EQ(static_cast<double>(f16_to_float(static_cast<uint16_t>(bits))), expected) << bits;
  }
  EXPECT_TRUE(std::isinf(f16_to_float(0x7c00)));
  EXPECT_TRUE(std::isnan(f16_to_float(0x7c01)));
}

TEST(Float16, F16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7c00u; ++bits) {
    const auto low = static_cast<uint16_t>(bits);
    const float value = f16_to_float(low);
    EXPECT_EQ(float_to_f16(value), low);
    EXPECT_EQ(float_to_f16(-value), low | 0x8000u);
    if (bits + 1 == 0x7c00u) break;
    const float next = f16_to_float(static_cast<uint16_t>(bits + 1));
    const float middle = value + (next - value) / 2;  // exact
    EXPECT_EQ(float_to_f16(middle), (bits & 1u) != 0 ? bits + 1 : bits) << bits;
    EXPECT_EQ(float_to_f16(std::nextafter(middle, next)), bits + 1) << bits;
    EXPECT_EQ(float_to_f16(std::nextafter(middle, value)), bits) << bits;
  }
  EXPECT_EQ(float_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7c00);
}

TEST(Float16, Bf16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even below
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, even above
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::nanf("")))));
}

TEST(Digest, Sha256OfTheStandardExample) {
  const std::string text = "abc";  // FIPS 180-4, example B.1
  EXPECT_EQ(to_hex(sha256(std::as_bytes(std::span(text)))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, PiecesGiveTheSameAsTheWhole) {
  const std::string text(100'000, 'x');
  const auto bytes = std::as_bytes(std::span(text));
  Xxh3Stream stream;
  for (size_t i = 0; i < bytes.size(); i += 777)
    stream.update(bytes.subspan(i, std::min<size_t>(777, bytes.size() - i)));
  EXPECT_EQ(stream.digest(), xxh3_128(bytes));
}

TEST(MappedFile, SaysWhatIsWrong) {
  const TempDir dir;
  EXPECT_FALSE(MappedFile::open(dir.path() / "missing").ok());
  const auto folder = MappedFile::open(dir.path());
  ASSERT_FALSE(folder.ok());
  EXPECT_NE(folder.error().message.find("not a regular file"), std::string::npos);
}

// Pages of mapped files that this process has in memory.
int64_t mapped_file_pages() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0, shared = 0;
  statm >> size >> resident >> shared;
  return shared;
}

TEST(MappedFile, PagesThatAreReleasedLeaveMemoryAndComeBackWhenTouched) {
  const TempDir dir;
  const std::string text(size_t{16} << 20, 'x');
  std::ofstream(dir.path() / "large") << text;
  const auto file = MappedFile::open(dir.path() / "large");
  ASSERT_TRUE(file.ok());
  const auto touch = [&] { return std::count(file->bytes().begin(), file->bytes().end(), std::byte{'x'}); };
  EXPECT_EQ(touch(), int64_t{16} << 20);
  const int64_t touched = mapped_file_pages();
  release_pages(file->bytes().subspan(1));
  EXPECT_LE(mapped_file_pages(), touched - (int64_t{15} << 20) / ::sysconf(_SC_PAGESIZE));
  release_pages(file->bytes().first(1));  // no whole page: nothing happens
  EXPECT_EQ(touch(), int64_t{16} << 20);
}

TEST(StagedDirectory, AppearsWholeOrNotAtAll) {
  const TempDir dir;
  const fs::path target = dir.path() / "bundle";
  {
    auto staged = StagedDirectory::create(target, false);
    ASSERT_TRUE(staged.ok());
    ASSERT_TRUE(staged->write_file("a", "one").ok());
  }
  EXPECT_TRUE(fs::is_empty(dir.path())) << "an abandoned staging directory is removed";
  for (const char* text : {"two", "three"}) {
    auto staged = StagedDirectory::create(target, true);
    ASSERT_TRUE(staged.ok());
    ASSERT_TRUE(staged->write_file("a", text).ok());
    ASSERT_TRUE(staged->commit().ok());
    EXPECT_EQ(read_text_file(target / "a").value(), text);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator{}), 1);
  const auto again = StagedDirectory::create(target, false);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().error_class, ErrorClass::kUsage);
}

TEST(StagedDirectory, SweepsWhatADeadProcessLeft) {
  const TempDir dir;
  fs::create_directory(dir.path() / ".bundle.staging-999999999");
  auto staged = StagedDirectory::create(dir.path() / "bundle", false);
  ASSERT_TRUE(staged.ok());
  EXPECT_FALSE(fs::exists(dir.path() / ".bundle.staging-999999999"));
}

TEST(TextTable, AlignsColumns) {
  TextTable table({"name", ">bytes"});
  table.add_row({"weights", "12"});
  table.add_row({"kv", "3456"});
  EXPECT_EQ(table.to_string(), "name     bytes\n-------  -----\nweights     12\nkv        3456\n");
  EXPECT_EQ(format_bytes(269e6), "269.0 MB");
  EXPECT_EQ(format_ns(1250), "1.25 us");
}

TEST(Digest, OfPartsIsTheDigestOfTheWhole) {
  std::vector<std::byte> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(xxh3_128_joined({all.first(3), all.subspan(3, 0), all.subspan(3)}), xxh3_128(all));
  EXPECT_FALSE(xxh3_128_joined({all.first(3), all.subspan(4)}) == xxh3_128(all));
}

}  // namespace
}  // namespace plow
