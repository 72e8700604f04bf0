// Chat templates: what transformers and jinja2 make of the same source, and what a hostile template
// or message may cost. TSQ_CHAT_GOLDENS names one more file of goldens to compare with.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "chat/chat_template.h"
#include "chat/text.h"

namespace tsq::chat {
namespace {

Json read_json(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  return Json::parse(in);
}
Json data(const std::string& name) { return read_json(TSQ_TEST_DATA "/chat/" + name); }

Value value(const Json& json) {
  auto result = from_json(json);
  EXPECT_TRUE(result);
  return *std::move(result);
}

// The text, or what went wrong.
Result<std::string> render(std::string_view source, const Json& context = Json::object(),
                           const RenderOptions& options = {}) {
  const auto parsed = Template::parse(source);
  if (!parsed) return parsed.error();
  return parsed->render(value(context), options);
}

std::tm time_of(const Json& now) {
  std::tm time{};
  time.tm_year = now[0].get<int>() - 1900;
  time.tm_mon = now[1].get<int>() - 1;
  time.tm_mday = now[2];
  time.tm_hour = now[3];
  time.tm_min = now[4];
  time.tm_sec = now[5];
  time.tm_isdst = -1;
  std::mktime(&time);  // the day of the week
  return time;
}

void expect_same(const Result<Prompt>& prompt, const Json& golden) {
  if (golden.contains("text")) {
    ASSERT_TRUE(prompt) << prompt.error().message();
    ASSERT_FALSE(prompt->fallback) << prompt->fallback->message();
    EXPECT_EQ(prompt->text, golden["text"].get<std::string>());
  } else if (golden.contains("refused")) {
    ASSERT_FALSE(prompt) << prompt->text;
    EXPECT_EQ(prompt.error().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(prompt.error().message(), printable(golden["refused"].get<std::string>(), 1000));
  } else {
    ASSERT_TRUE(prompt) << prompt.error().message();
    EXPECT_TRUE(prompt->fallback) << prompt->text << "\nexpected " << golden["fails"];
  }
}

void compare_conversations(const Json& goldens) {
  RenderOptions options;
  options.now = time_of(goldens["now"]);
  for (const auto& [name, source] : goldens["templates"].items()) {
    const ChatTemplate chat(source.get<std::string>(), "<s>", "</s>");
    for (const auto& [key, given] : goldens["conversations"].items()) {
      SCOPED_TRACE(name + ", " + key);
      Conversation conversation;
      conversation.messages = given["messages"];
      conversation.tools = given.value("tools", Json());
      conversation.add_generation_prompt = given.value("add_generation_prompt", true);
      conversation.variables = given.value("variables", Json::object());
      expect_same(chat.render(conversation, options), goldens["rendered"][name][key]);
    }
  }
}

TEST(ChatTest, ConversationsAsInTransformers) {
  const Json goldens = data("rendered.json");
  ASSERT_GE(goldens["templates"].size(), 15u);
  ASSERT_GE(goldens["conversations"].size(), 20u);
  compare_conversations(goldens);
}

TEST(ChatTest, MoreConversations) {
  const char* path = std::getenv("TSQ_CHAT_GOLDENS");
  if (path == nullptr) GTEST_SKIP() << "TSQ_CHAT_GOLDENS is not set";
  compare_conversations(read_json(path));
}

void compare_sources(const Json& entries, const Json& context, bool in_braces) {
  for (const auto& entry : entries) {
    const auto source = entry[0].get<std::string>();
    SCOPED_TRACE(source);
    const auto text = render(in_braces ? "{{ " + source + " }}" : source, context);
    if (entry[1].is_null()) {
      EXPECT_FALSE(text) << *text;
    } else if (text) {
      EXPECT_EQ(*text, entry[1].get<std::string>());
    } else {
      ADD_FAILURE() << text.error().message() << "\nexpected: " << entry[1];
    }
  }
}

TEST(ChatTest, ExpressionsAsInJinja) {
  const Json goldens = data("expressions.json");
  ASSERT_GE(goldens["expressions"].size(), 700u);
  compare_sources(goldens["expressions"], goldens["context"], true);
}

TEST(ChatTest, SnippetsAsInJinja) {
  const Json goldens = data("expressions.json");
  ASSERT_GE(goldens["snippets"].size(), 150u);
  compare_sources(goldens["snippets"], goldens["context"], false);
}

// --- what is refused, and in which words ---

struct Refusal {
  std::string source;
  ErrorCode code;
  std::string message;  // a part of it
};

void expect_refused(const Refusal& r, const RenderOptions& options = {}) {
  SCOPED_TRACE(r.source.substr(0, 200));
  const auto text = render(r.source, Json::object(), options);
  ASSERT_FALSE(text) << text->substr(0, 200);
  EXPECT_EQ(text.error().code(), r.code) << text.error().message();
  EXPECT_NE(text.error().message().find(r.message), std::string::npos) << text.error().message();
}

TEST(ChatTest, ErrorsNameTheLine) {
  const ErrorCode damaged = ErrorCode::damaged, unsupported = ErrorCode::unsupported;
  const Refusal kRefusals[] = {
      {"a\nb\n{{ missing.x }}", damaged, "line 3: 'missing' is undefined"},
      {"{% set d = {} %}\n{{ d.x.y }}", damaged, "line 2: 'dict object' has no attribute 'x'"},
      {"\n\n{{ 'a' + 1 }}", damaged, "line 3: can only concatenate str (not \"int\") to str"},
      {"\n{% if x %}", damaged, "line 2: the end of the template, expected {% endif %}"},
      {"{{ a b }}", damaged, "line 1: 'b', expected }}"},
      {"{# x", damaged, "line 1: a comment without an end, expected #}"},
      {"{{ [].append(1) }}", damaged, "'append' of 'list' object is unsafe"},
      {"{% include 'x' %}", unsupported, "line 1: tag 'include', expected one of if, for"},
      {"{% block b %}{% endblock %}", unsupported, "line 1: tag 'block', expected one of if, for"},
      {"{% for i in l recursive %}{% endfor %}", unsupported, "line 1: a recursive loop"},
      {"{{ 1 | pprint }}", unsupported, "line 1: no filter named 'pprint'"},
      {"{{ 9223372036854775807 + 1 }}", unsupported, "line 1: an integer of more than 64 bits"},
      {"{{ 9223372036854775808 }}", damaged, "line 1: number 9223372036854775808, expected one"},
      {"{{ raise_exception('no\ttab') }}", ErrorCode::invalid_argument, "no\\x09tab"},
  };
  for (const Refusal& r : kRefusals) expect_refused(r);
}

std::string repeated(const std::string& text, int n) {
  std::string result;
  for (int i = 0; i < n; ++i) result += text;
  return result;
}

TEST(ChatTest, DeepSourcesAreRefused) {
  const std::pair<std::string, std::string> kNests[] = {
      {"(", ")"},           {"[", "]"},  {"not ", ""}, {"-", ""},     {"{1:", "}"},
      {"range(", ")"},      {"", ".a"},  {"", "|e"},   {"", " + 1"},  {"", " and 1"},
      {"1 if 1 else ", ""}, {"", "[0]"}, {"", "()"},   {"", " if 1"},
  };
  for (const auto& [before, after] : kNests) {
    for (const int n : {300, 50000}) {
      expect_refused({"{{ " + repeated(before, n) + "1" + repeated(after, n) + " }}",
                      ErrorCode::unsupported, "levels"});
    }
  }
  const std::pair<std::string, std::string> kBlocks[] = {
      {"{% if 1 %}", "{% endif %}"},
      {"{% for i in l %}", "{% endfor %}"},
      {"{% set x %}", "{% endset %}"},
      {"{% macro m() %}", "{% endmacro %}"},
      {"{% filter upper %}", "{% endfilter %}"},
  };
  for (const auto& [before, after] : kBlocks) {
    expect_refused({repeated(before, 20000) + repeated(after, 20000), ErrorCode::unsupported,
                    "nested more than 100 levels deep"});
  }
  expect_refused({"{% set " + repeated("(", 100000) + "x" + repeated(")", 100000) + " = 1 %}",
                  ErrorCode::unsupported, "nested more than"});
  expect_refused(
      {std::string((1 << 20) + 1, 'x'), ErrorCode::unsupported, "expected at most 1048576"});
}

TEST(ChatTest, LongFlatSourcesAreNoProblem) {
  EXPECT_EQ(*render("{{ 1" + repeated(" ~ 1", 5000) + " }}"), repeated("1", 5001));
  EXPECT_EQ(*render(repeated("{% if 1 %}x{% endif %}", 5000)), repeated("x", 5000));
  EXPECT_EQ(render("{{ [" + repeated("1,", 5000) + "] | length }}").ok(), true);
}

TEST(ChatTest, CostsAreBounded) {
  const ErrorCode unsupported = ErrorCode::unsupported;
  const std::string kMany = "{% for i in range(99999) %}";
  const Refusal kRefusals[] = {
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", unsupported,
       "evaluation nested more than 500"},
      {"{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
       unsupported, "evaluation nested"},
      {kMany + "{% for j in [1, 2, 3, 4, 5] %}{% endfor %}{% endfor %}", unsupported,
       "expected a template that"},
      {kMany + kMany + "x{% endfor %}{% endfor %}", unsupported, "expected"},
      {"{% set ns = namespace(x='ab') %}" + kMany + "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
       unsupported, "bytes of values"},
      {"{% set ns = namespace(x='ab') %}" + kMany + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
       unsupported, "bytes of values"},
      {"{% set ns = namespace(x=[1]) %}" + kMany + "{% set ns.x = ns.x + ns.x %}{% endfor %}",
       unsupported, "bytes of values"},
      {"{% set ns = namespace(x='ab') %}" + kMany +
           "{% set ns.x = ns.x | replace('', ns.x) %}{% endfor %}",
       unsupported, "bytes of values"},
      {"{% set ns = namespace(x='ab') %}" + kMany +
           "{% set ns.x = ns.x.join(ns.x | list) %}{% endfor %}",
       unsupported, "bytes of values"},
      {"{% set ns = namespace(x=[]) %}" + kMany + "{% set ns.x = [ns.x] %}{% endfor %}",
       unsupported, "nested more than 100 levels"},
      {"{% set ns = namespace(x={}) %}" + kMany + "{% set ns.x = {'a': ns.x} %}{% endfor %}",
       unsupported, "nested more than 100 levels"},
      {"{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% "
       "endfor %}{{ ns.x }}",
       unsupported, "over"},
      {"{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% "
       "endfor %}{{ ns.x | tojson }}",
       unsupported, "over"},
      {"{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] "
       "%}{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
       unsupported, "over"},
      {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", unsupported, "holds itself"},
      {"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a == ns.a }}{{ ns.a }}", unsupported,
       "holds itself"},
      {"{{ range(10 ** 9) | length }}", ErrorCode::damaged, "a range of more than 100000 items"},
      {"{{ 'x' * 10 ** 12 }}", unsupported, "bytes of values"},
      {"{{ [1] * 10 ** 12 }}", unsupported, "bytes of values"},
      {"{{ 'x' * 9223372036854775807 }}", unsupported, "bytes of values"},
      {"{{ 'x' | indent(10 ** 12) }}", unsupported, "bytes of values"},
      {"{{ 'x'.center(10 ** 12) }}", unsupported, "bytes of values"},
      {"{{ 'x'.zfill(10 ** 12) }}", unsupported, "bytes of values"},
      {"{{ '%99999999d' % 1 }}", unsupported, "format width of more than 1000"},
      {"{{ [1] | tojson(indent=10 ** 9) }}", unsupported, "expected at most 1000"},
      {"{{ 2 ** 10 ** 10 }}", unsupported, "more than 64 bits"},
      {"{{ strftime_now('%999999999Y') }}", unsupported, "expected the conversions of strftime"},
      {"{% set x = 'x' * 1000000 %}" + kMany + "{{ x }}{% endfor %}", unsupported,
       "over 1048576 bytes of output"},
      {"{% set x = 'x' * 1000000 %}" + kMany + "{% if x.find('y') %}{% endif %}{% endfor %}",
       unsupported, "over 300000 steps"},
      {"{% set x = 'x' * 1000000 %}" + kMany + "{% if x[999999] %}{% endif %}{% endfor %}",
       unsupported, "over 300000 steps"},
      {"{% set x = 'x' * 1000000 %}" + kMany + "{% if x | length %}{% endif %}{% endfor %}",
       unsupported, "over 300000 steps"},
      {"{% set x = 'x' * 500000 %}{% set y = x ~ 'y' %}{% set x = x ~ x %}" + kMany +
           "{% if y in x or x.find(y) > 0 or x.rfind(y) > 0 %}{% endif %}{% endfor %}",
       unsupported, "over 300000 steps"},
      {"{% set x = range(99999) %}" + kMany + "{% if -1 in x %}{% endif %}{% endfor %}",
       unsupported, "over 300000 steps"},
  };
  RenderOptions options;  // less than by default: the same, sooner
  options.limits = {.output_bytes = 1 << 20, .steps = 300'000, .value_bytes = 8 << 20};
  for (const Refusal& r : kRefusals) expect_refused(r, options);
}

TEST(ChatTest, LongSearchesFindWhatShortOnesDo) {
  std::string part = repeated("ab", 20) + "c", text = repeated("ab", 30) + "c" + part + part + "ab";
  EXPECT_EQ(find_text(text, part), text.find(part));
  EXPECT_EQ(find_text(text, part, 21), text.find(part, 21));
  EXPECT_EQ(rfind_text(text, part), text.rfind(part));
  part += 'd';
  EXPECT_EQ(find_text(text, part), text.npos);
  EXPECT_EQ(rfind_text(text, part), text.npos);
}

TEST(ChatTest, LimitsAreOptions) {
  const std::string loop = "{% for i in range(100) %}xxxxxxxxxx{% endfor %}";
  RenderOptions options;
  options.limits.output_bytes = 1000;
  EXPECT_TRUE(render(loop, Json::object(), options));
  options.limits.output_bytes = 999;
  const auto refused = render(loop, Json::object(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "line 1: over 999 bytes of output, expected fewer");
  options = {};
  options.limits.steps = 100;
  EXPECT_FALSE(render(loop, Json::object(), options));
}

TEST(ChatTest, TenMegabytesOfOutput) {
  const auto text =
      render("{% for i in range(10) %}{{ x }}{% endfor %}", {{"x", std::string(1 << 20, 'y')}});
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(text->size(), 10u << 20);
}

// --- conversations ---

TEST(ChatTest, ChatMlWhereTheTemplateFails) {
  Conversation c;
  c.messages = {message("system", "S"), message("user", "{{ U }}")};
  c.messages.push_back({{"role", "user"}, {"content", {{{"type", "text"}, {"text", "parts"}}}}});
  const std::string chatml =
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n{{ U }}<|im_end|>\n"
      "<|im_start|>user\nparts<|im_end|>\n<|im_start|>assistant\n";
  const std::pair<std::optional<std::string_view>, std::string> kSources[] = {
      {std::nullopt, "the file holds no chat template"},
      {"{% if %}", "line 1: %}, expected an expression"},
      {"{{ messages[0].content + 1 }}", "line 1: can only concatenate str (not \"int\") to str"},
      {"{{ 'x' * 10 ** 12 }}",
       "line 1: over 268435456 bytes of values, expected a template that makes fewer"},
  };
  for (const auto& [source, reason] : kSources) {
    const auto prompt = ChatTemplate(source).render(c);
    ASSERT_TRUE(prompt);
    EXPECT_EQ(prompt->text, chatml);
    ASSERT_TRUE(prompt->fallback);
    EXPECT_EQ(prompt->fallback->message(), reason);
  }
  c.add_generation_prompt = false;
  EXPECT_EQ(ChatTemplate(std::nullopt).render(c)->text.find("assistant"), std::string::npos);
}

TEST(ChatTest, BadConversations) {
  const ChatTemplate chat("{{ messages }}");
  const auto reason = [&](const Conversation& c) {
    const auto prompt = chat.render(c);
    EXPECT_FALSE(prompt);
    if (prompt) return std::string();
    EXPECT_EQ(prompt.error().code(), ErrorCode::invalid_argument);
    return prompt.error().message();
  };
  Conversation c;
  c.messages = "x";
  EXPECT_EQ(reason(c), "messages: not a list, expected a list of objects");
  c.messages = {message("user", "x"), 5};
  EXPECT_EQ(reason(c), "message 1: not an object, expected one");
  c.messages = Json::array({Json{{"content", "x"}}});
  EXPECT_EQ(reason(c), "message 0: no role, expected a string");
  c.messages = Json::array({message("user", "a\xff")});
  EXPECT_EQ(reason(c), "text 'a\\xff', expected UTF-8");
  c.messages = Json::array({message("user", "")});
  c.tools = 1;
  EXPECT_EQ(reason(c), "tools: not a list, expected one");
  c.tools = Json::array({18446744073709551615u});
  EXPECT_EQ(reason(c), "integer 18446744073709551615, expected one below 2^63");
  c.tools = Json::array();
  for (int i = 0; i < 200; ++i) c.tools = Json::array({c.tools});
  EXPECT_EQ(reason(c), "JSON nested more than 100 levels deep, expected fewer");
  c.tools = nullptr;
  c.variables = 1;
  EXPECT_EQ(reason(c), "variables: not an object, expected one");
}

TEST(ChatTest, ReasoningByAnyName) {
  const ChatTemplate chat("{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}");
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    Conversation c;
    c.messages = Json::array({Json{{"role", "assistant"}, {"content", nullptr}, {name, "hm"}}});
    EXPECT_EQ(chat.render(c)->text, "hm|hm") << name;
  }
}

TEST(ChatTest, VariablesWinOverTokens) {
  Conversation c;
  EXPECT_EQ(ChatTemplate("{{ bos_token }}{{ eos_token is defined }}", "<s>").render(c)->text,
            "<s>False");
  c.variables["bos_token"] = "B";
  EXPECT_EQ(ChatTemplate("{{ bos_token }}", "<s>").render(c)->text, "B");
}

TEST(ChatTest, MacrosOutliveTheirScope) {
  EXPECT_EQ(
      *render("{% set ns = namespace() %}{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}"
              "{% set ns.m = m %}{% set ns.l = loop %}{% endfor %}{{ ns.m() }}{{ ns.l.index }}{{ "
              "ns.l.last }}"),
      "22True");
}

}  // namespace
}  // namespace tsq::chat
