// The verifier stands for a script here: what plowc does with each of its answers.
#include "compile/run_verifier.h"

#include "base/testing/temp_dir.h"

#include <gtest/gtest.h>

#include <fstream>

namespace plow {
namespace {

namespace fs = std::filesystem;

class RunVerifierTest : public testing::Test {
 protected:
  Result<std::string> run(
      const std::string& script, const std::function<bool()>& cancelled = [] { return false; }) {
    const fs::path program = folder_.path() / "verifier";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(program, fs::perms::owner_all);
    return run_verifier(program, folder_.path() / "model.pkt", cancelled);
  }
  Error refused(const std::string& script) {
    const auto result = run(script);
    EXPECT_FALSE(result.ok()) << script;
    return result.ok() ? Error{} : result.error();
  }

  const TempDir folder_;
};

TEST_F(RunVerifierTest, GivesWhatIsPrintedOfAnAcceptanceAndOfARefusal) {
  EXPECT_EQ(run("echo \"$2 of $(basename $1)\"").value(), "--receipt of model.pkt\n");
  EXPECT_EQ(run("echo no; exit 1").value(), "no\n");
  EXPECT_EQ(
      run("i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done")
          .value()
          .size(),
      2000u * 41);
}

TEST_F(RunVerifierTest, AProgramThatBreaksOffGivesNoReceipt) {
  const Error ended = refused("echo accepted; exit 2");
  EXPECT_EQ(ended.error_class, ErrorClass::kVerification);
  EXPECT_NE(ended.message.find("ended with status 2"), std::string::npos) << ended.message;
  EXPECT_NE(refused("echo accepted; kill -9 $$").message.find("ended by signal 9"), std::string::npos);
}

TEST_F(RunVerifierTest, AProgramThatCannotRunIsSaidBeforeAndWhenItIsAsked) {
  const Status missing = check_verifier(folder_.path() / "nothing");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("--no-verify"), std::string::npos) << missing.error().message;
  EXPECT_FALSE(
      run_verifier(folder_.path() / "nothing", folder_.path() / "model.pkt", [] { return false; }).ok());
  EXPECT_TRUE(check_verifier("/bin/sh").ok());
}

TEST_F(RunVerifierTest, ACancelledOneIsEnded) {
  int asked = 0;
  const auto result = run("exec sleep 600", [&] { return ++asked > 2; });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().error_class, ErrorClass::kInput);
}

}  // namespace
}  // namespace plow
