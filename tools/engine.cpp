#include "engine.h"

#include "base/errorf.h"
#include "model_file.h"
#include "support.h"
#include "tsq/loader.h"

namespace tsq::tool {

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command.add_option("-m,--model", options.model, "a .tsq file [models/fairy-tales.tsq]")
      ->type_name("FILE");
  command.add_option("-t,--threads", options.session.threads, "threads [one a physical core]")
      ->type_name("N");
  command
      .add_option("--activations", options.activations,
                  "f32 is slower and does not round activations [int8]")
      ->check(CLI::IsMember({"int8", "f32"}))
      ->option_text("int8|f32");
}

Result<Model> load_model(const EngineOptions& options) {
  const auto path = model_path(options.model);
  if (!path) return path.error();
  auto model = Loader().load(*path);
  if (!model) return with_convert_hint(model.error(), *path);
  if (model->tokenizer() == nullptr)
    return errorf(ErrorCode::unsupported, "%s: the file holds no tokenizer, so it cannot read text",
                  path->c_str());
  return model;
}

Result<Session> create_session(const Model& model, const EngineOptions& options) {
  SessionOptions wanted = options.session;
  wanted.activations = options.activations == "f32" ? Activations::f32 : Activations::int8;
  auto session = Session::create(model, wanted);
  if (session && session->threads() < wanted.threads)
    warn("%d threads run, %d were asked for: this process has no more cores", session->threads(),
         wanted.threads);
  if (session && session->context() > model.context_length())
    warn("a context of %d tokens, the model was trained for %d: expect it to lose the thread",
         session->context(), model.context_length());
  return session;
}

Result<std::vector<Token>> encode_text(const Tokenizer& tokenizer, std::string_view text,
                                       bool parse_special) {
  auto tokens = tokenizer.encode(text, {.add_special = false, .parse_special = parse_special});
  if (tokens && tokenizer.adds_bos()) tokens->insert(tokens->begin(), *tokenizer.bos());
  return tokens;
}

void describe(const Model& model, const Session& session, const EngineOptions& options) {
  const std::string name(model.name()), architecture(model.architecture());
  const auto level = cpu_level();
  info_fact(
      "model",
      stringf("%s, %s, %d layers, %s", printable(name).c_str(), printable(architecture).c_str(),
              model.n_layers(), human_bytes(model.file_bytes()).c_str()),
      {{"name", name},
       {"architecture", architecture},
       {"layers", model.n_layers()},
       {"file_bytes", model.file_bytes()}});
  info_fact("context",
            stringf("%d tokens, %s of cache and scratch", session.context(),
                    human_bytes(session.memory_bytes()).c_str()),
            {{"tokens", session.context()}, {"bytes", session.memory_bytes()}});
  info_fact(
      "compute",
      stringf("%s, %d thread%s, %s activations", level ? *level : "unknown", session.threads(),
              session.threads() == 1 ? "" : "s", options.activations.c_str()),
      {{"level", level ? *level : "unknown"},
       {"threads", session.threads()},
       {"activations", options.activations}});
}

}  // namespace tsq::tool
