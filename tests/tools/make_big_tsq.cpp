// Writes a .tsq file of about GIB gibibytes for open_tsq: make_big_tsq OUT.tsq [GIB].
#include <cstdio>
#include <cstdlib>

#include "big_file.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fputs("usage: make_big_tsq OUT.tsq [GIB]\n", stderr);
    return 2;
  }
  const double gib = argc == 3 ? std::atof(argv[2]) : 1;
  const auto written =
      tsq::format::write_big_file(argv[1], static_cast<std::uint64_t>(gib * (1 << 30)));
  if (written) return 0;
  std::fprintf(stderr, "%s\n", written.error().message().c_str());
  return 1;
}
