// What opening a .tsq file costs, its header, directory and vocabulary checked: open_tsq FILE.
// Design: less than 50 ms from a warm page cache and less than 8 MB of private dirty memory.
#include <chrono>
#include <cstdio>

#include "big_file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: open_tsq FILE\n", stderr);
    return 2;
  }
  using tsq::format::private_dirty_bytes;
  for (int run = 0; run < 5; ++run) {  // the first may find a cold cache
    const std::uint64_t before = private_dirty_bytes();
    const auto start = std::chrono::steady_clock::now();
    const auto model = tsq::format::open_model(argv[1]);
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    const std::uint64_t after = private_dirty_bytes();
    if (!model) {
      std::fprintf(stderr, "%s\n", model.error().message().c_str());
      return 1;
    }
    std::printf("%.1f ms, %+lld KiB private dirty, %u tokens, %zu tensors, %llu bytes\n",
                elapsed.count(),
                (static_cast<long long>(after) - static_cast<long long>(before)) / 1024,
                model->tokenizer.size(), model->opened.file.tensors().size(),
                static_cast<unsigned long long>(model->opened.file.file_bytes()));
  }
  return 0;
}
