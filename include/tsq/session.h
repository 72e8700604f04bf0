// Running a model: tokens in, logits out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "tsq/error.h"
#include "tsq/export.h"
#include "tsq/model.h"

namespace tsq {

// How activations meet ternary weights. int8 is the fast path, the same bits on every CPU; f32
// keeps activations and cache in f32, for tests and comparisons.
enum class Activations : std::uint8_t { int8, f32 };

enum class Logits : std::uint8_t { last, all };

struct SessionOptions {
  std::int32_t context = 0;  // tokens; 0: the model's context, or less where memory is short
  std::int32_t threads = 0;  // 0: physical cores within affinity and cgroup quota
  Activations activations = Activations::int8;
};

// What a session had read at a position, apart from it: a copy of its cache, and of its state where
// the model is recurrent. Move-only.
class TSQ_API Snapshot {
 public:
  std::int32_t position() const;       // tokens that it holds
  std::uint64_t memory_bytes() const;  // as many positions of the key/value cache, and the state

  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  struct State;  // opaque: the library's own
  explicit Snapshot(std::unique_ptr<const State> state);
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<const State> state_;
};

// What a session will take, known before it does. The first pass takes a row of logits more.
struct MemoryPlan {
  std::int32_t context = 0;          // tokens
  std::int32_t largest_context = 0;  // the most that would fit
  std::uint64_t weight_bytes = 0;    // the model's file: mapped, shared by its sessions
  std::uint64_t repacked_bytes = 0;  // its repacked weights: taken by the model, shared as well
  std::uint64_t kv_bytes_per_token = 0;
  std::uint64_t kv_bytes = 0;     // of the whole context
  std::uint64_t state_bytes = 0;  // of a recurrent model; each mark takes as much again
  std::uint64_t scratch_bytes = 0;
};

// A Session is one conversation with a Model: a key/value cache and a position in it, and the state
// of a recurrent model, which cannot forget its last tokens. Many sessions may share one model; a
// session belongs to one thread at a time.
class TSQ_API Session {
 public:
  // The model is borrowed: it must outlive the session. Errors: invalid_argument (a negative
  // option, a context above 2^24), out_of_memory (with the largest context that would fit),
  // unsupported (TSQ_ISA names a level this CPU lacks).
  static Result<Session> create(const Model& model, const SessionOptions& options = {});

  // The memory that create() would take now, taking none. Errors: as create().
  static Result<MemoryPlan> plan(const Model& model, const SessionOptions& options = {});

  // Called before each block of a prompt with the tokens done and to do; false cancels. What it
  // throws passes through append(), which then has appended nothing (a recurrent model: see there).
  using Progress = std::function<bool(std::int32_t done, std::int32_t total)>;

  // Appends the tokens and returns logits, valid until the next call: vocab_size floats after the
  // last token, or tokens.size() times as many. Splitting the tokens over calls does not change a
  // bit. Errors: invalid_argument (no token, an id outside the vocabulary), out_of_context (they do
  // not fit: nothing is appended), cancelled (position() is what it was before), numeric (an
  // activation became infinite or NaN: the layer is named; position() is what it was). But once a
  // recurrent model has computed something it can only go back to the last mark, or to 0: to there.
  Result<std::span<const float>> append(std::span<const Token> tokens, Logits logits = Logits::last,
                                        const Progress& progress = {});

  std::int32_t position() const;  // tokens in the context
  std::int32_t context() const;   // the most there can be
  std::int32_t threads() const;
  std::uint64_t memory_bytes() const;  // cache, state and scratch of this session, without marks

  // A copy of what was read so far. Errors: out_of_memory.
  Result<Snapshot> snapshot() const;
  // Goes back, or on, to where the snapshot was taken, in this session or in another one of the
  // same Model with the same activations. The snapshot can be restored again. Errors:
  // invalid_argument (of another model, or other activations), out_of_context (it holds more tokens
  // than this session can); nothing has changed then.
  Result<void> restore(const Snapshot& snapshot);

  // Forgets every token from `position` on. Errors: invalid_argument (not 0 <= position <=
  // position(); in a recurrent model, neither position() nor a mark nor 0).
  Result<void> rewind(std::int32_t position);
  // Whether the model is recurrent: rewind() needs marks.
  bool is_recurrent() const;
  // The last position, up to this one, that rewind() can go back to.
  std::int32_t rewindable(std::int32_t position) const;
  // Lets rewind() come back to position(). A recurrent model's state is copied (a snapshot would
  // copy the cache too) and that of the last kMarks positions kept; other models need no marks.
  // Errors: out_of_memory.
  Result<void> mark();
  static constexpr std::int32_t kMarks = 2;

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  struct State;  // opaque: the library's own
  explicit Session(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// The name of the CPU level that sessions of this process run on ("avx512"), and the message where
// TSQ_ISA asks for one that cannot be had.
TSQ_API Result<const char*> cpu_level();

}  // namespace tsq
