// Loading a file maps it: what is not read costs nothing, and nothing is copied.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "big_file.h"
#include "temporary_folder.h"
#include "tsq/loader.h"

namespace tsq::test {
namespace {

TEST(OpenMemory, ABigModelDirtiesLittle) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "big.tsq";
  // In a child: memory that the writer left behind here could be used again unseen.
  const pid_t child = fork();
  if (child == 0) _exit(write_big_file(path, 64 << 20, big_vocabulary()) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_GT(std::filesystem::file_size(path), 64u << 20);

  const std::uint64_t before = private_dirty_bytes();
  const auto model = Loader().load(path);
  const std::uint64_t after = private_dirty_bytes();
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->vocab_size(), 49152);
  ASSERT_NE(model->tokenizer(), nullptr);
  EXPECT_EQ(model->tokenizer()->vocab_size(), 49152);
  EXPECT_LT(after - std::min(before, after), 8u << 20);
}

}  // namespace
}  // namespace tsq::test
