// tsq_logits MODEL.tsq TOKENS OUT [--activations f32|int8]: the logits of every position of the
// token ids in the text file TOKENS, raw little-endian f32 [positions, vocab].
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "tsq/loader.h"
#include "tsq/session.h"

namespace {

int fail(const tsq::Error& error) {
  std::fprintf(stderr, "tsq_logits: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const bool f32 = argc == 6 && std::strcmp(argv[5], "f32") == 0;
  if (argc != 4 && (argc != 6 || std::strcmp(argv[4], "--activations") != 0)) {
    std::fputs("usage: tsq_logits MODEL.tsq TOKENS OUT [--activations f32|int8]\n", stderr);
    return 2;
  }
  std::ifstream in(argv[2]);
  std::vector<tsq::Token> tokens;
  for (tsq::Token token; in >> token;) tokens.push_back(token);

  const auto model = tsq::Loader().load(argv[1]);
  if (!model) return fail(model.error());
  auto session = tsq::Session::create(
      *model, {.activations = f32 ? tsq::Activations::f32 : tsq::Activations::int8});
  if (!session) return fail(session.error());
  const auto logits = session->append(tokens, tsq::Logits::all);
  if (!logits) return fail(logits.error());
  std::ofstream out(argv[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(logits->data()),
            static_cast<std::streamsize>(logits->size_bytes()));
  return out.flush() ? 0 : 1;
}
