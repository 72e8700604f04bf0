// Opening a file maps it: what is not read costs nothing, and nothing is copied.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "big_file.h"
#include "temporary_folder.h"

namespace tsq::format {
namespace {

TEST(OpenMemory, ABigFileDirtiesLittle) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "big.tsq";
  // In a child: memory that the writer left behind here could be used again unseen.
  const pid_t child = fork();
  if (child == 0) _exit(write_big_file(path, 64 << 20) ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_GT(std::filesystem::file_size(path), 64u << 20);

  const std::uint64_t before = private_dirty_bytes();
  const auto model = open_model(path);
  ASSERT_TRUE(model) << model.error().message();
  const std::uint64_t after = private_dirty_bytes();
  EXPECT_EQ(model->tokenizer.size(), 49152u);
  EXPECT_EQ(model->tokenizer.merge_count(), 48896u);
  EXPECT_LT(after - std::min(before, after), 8u << 20);
}

}  // namespace
}  // namespace tsq::format
