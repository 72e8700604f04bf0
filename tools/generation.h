// Tokens through a session: prompts in, text out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text_stream.h"
#include "tsq/sampler.h"
#include "tsq/session.h"

namespace tsq::tool {

// How long something took.
struct Timing {
  std::size_t tokens = 0;
  std::size_t computed = 0;  // tokens that the model was run for: an answer's last one is not
  double seconds = 0;

  Timing& operator+=(const Timing& other);
  void print(const char* what) const;
};

// Reads prompts into a session. What the session holds of a prompt already is not read again, as
// far as it can go back to there.
class Reader {
 public:
  explicit Reader(Session& session) : session_(session) {}

  // Logits after the prompt, with a progress bar. lasting: how many of its first tokens prompts to
  // come are expected to begin with; a session that needs marks gets one there. Errors: those of
  // Session::append; cancelled when Ctrl-C was pressed.
  Result<std::span<const float>> read(std::span<const Token> prompt, std::size_t lasting = 0);
  Result<std::span<const float>> append(Token token);

  bool is_full() const { return session_.position() == session_.context(); }
  std::int32_t context() const { return session_.context(); }
  const Timing& timing() const { return timing_; }  // of every prompt so far

 private:
  // In pieces that take a moment each, so that Ctrl-C is soon heeded. One of them ends where the
  // mark is due, unless that is 0.
  Result<std::span<const float>> read_in_pieces(std::span<const Token> tokens, std::size_t mark);
  Result<std::span<const float>> append(std::span<const Token> tokens);

  Session& session_;
  std::vector<Token> held_;  // by the session
  Timing timing_;
};

struct GenerationOptions {
  std::int32_t predict = -1;  // tokens; -1: until the text ends or the context is full
  std::vector<std::string> stops;
  bool ignore_eos = false;
};

// Where a text goes as it grows.
class Sink {
 public:
  virtual ~Sink() = default;
  // Whole characters that no stop string will take back. False ends the generation.
  virtual bool show(std::string_view text) = 0;
  // Tokens that come next, whatever the model would say.
  virtual std::vector<Token> forced() { return {}; }
  // A control token has no text of its own, except those that are to be shown.
  virtual bool shows(Token) const { return false; }
};

// One answer: from the logits after the prompt to the end of the text.
class Generation {
 public:
  Generation(const Tokenizer& tokenizer, Reader& reader, Sampler& sampler,
             const GenerationOptions& options, Sink& sink);

  // Errors: those of Session::append. Ctrl-C and a sink that fails end it without one.
  Result<void> run(std::span<const float> logits);

  bool context_full() const { return context_full_; }
  const Timing& timing() const { return timing_; }

 private:
  Result<void> continue_from(std::span<const float> logits);
  Token next(std::span<const float> logits);
  bool show(const std::string& text);

  const Tokenizer& tokenizer_;
  Reader& reader_;
  Sampler& sampler_;
  const GenerationOptions& options_;
  Sink& sink_;
  TextStream stream_;
  Timing timing_;
  std::vector<float> allowed_;
  std::vector<Token> forced_;  // the next one last
  bool context_full_ = false;
};

}  // namespace tsq::tool
