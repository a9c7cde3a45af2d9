#include "plowrt/page_cache.h"

#include "base/testing/temp_dir.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <fstream>

namespace plow {
namespace {

TEST(PageCache, AFileIsInMemoryWhenItWasReadAndNotWhenItWasForgotten) {
  const TempDir folder;
  struct statfs system {};
  ASSERT_EQ(::statfs(folder.path().c_str(), &system), 0);
  if (system.f_type == TMPFS_MAGIC) GTEST_SKIP() << "files of a file system in memory are never forgotten";
  const auto file = folder.path() / "file";
  std::ofstream(file) << std::string(size_t{4} << 20, 'x');
  ASSERT_TRUE(ask_to_forget(file).ok());
  EXPECT_EQ(share_in_memory(file).value(), 0);
  ASSERT_TRUE(read_into_memory(file).ok());
  EXPECT_EQ(share_in_memory(file).value(), 1);
  ASSERT_TRUE(ask_to_forget(file).ok());
  EXPECT_EQ(share_in_memory(file).value(), 0);
}

TEST(PageCache, AFileThatIsNotThereIsAnErrorThatNamesIt) {
  for (const Status& status : {read_into_memory("/not/there"), ask_to_forget("/not/there")}) {
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("/not/there"), std::string::npos);
  }
  EXPECT_FALSE(share_in_memory("/not/there").ok());
}

}  // namespace
}  // namespace plow
