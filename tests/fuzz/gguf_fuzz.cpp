// Whatever the bytes, the GGUF reader answers, and every byte that it then promises is readable.
#include "checkpoint_checks.h"
#include "import/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const tsq::importer::Bytes parts[] = {std::as_bytes(std::span(data, size))};
  const auto checkpoint = tsq::importer::parse_gguf(parts);
  if (checkpoint) tsq::fuzz::check_checkpoint(*checkpoint);
  return 0;
}
