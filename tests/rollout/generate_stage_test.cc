// `rematch-stages stage generate` on a tiny checkpoint.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "base/text.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tool_stages.h"

namespace rematch {
namespace {

const std::string& model_dir() {
  static const std::string path = test::source_path("tests/golden/rollout_model");
  return path;
}

struct StageAnswer {
  int code = 0;
  std::vector<Json> lines;
};

StageAnswer generate(const std::vector<std::string>& inputs, int batch_size = 1,
                     const std::string& backend = "hf") {
  StageOptions options;
  options.backend = backend;
  options.model_dir = model_dir();
  options.device = "cpu";
  at::set_num_threads(1);  // the model is too small for two
  const auto stage = make_generate_stage(options);
  std::istringstream in(join(inputs, "\n"));
  std::ostringstream out;
  StageAnswer answer;
  answer.code = run_stage(*stage, batch_size, in, out);
  for (const std::string& line : split(out.str(), '\n')) {
    if (!line.empty()) answer.lines.push_back(parse_json(line, "output"));
  }
  return answer;
}

std::string line(const std::string& id, const std::string& text, const std::string& more = "") {
  return R"({"id": ")" + id + R"(", "messages": [{"role": "user", "content": ")" + text +
         R"("}], "max_new_tokens": 12)" + more + "}";
}

}  // namespace

TEST(GenerateStage, AnswersEachLineAlikeWhateverTheBatch) {
  const std::vector<std::string> inputs{
      line("a", "what is here?"),
      line("b", "and over there, a longer question?"),
      line("c", "x", R"(, "repetition_penalty": 1.3)"),
      line("d", "hot", R"(, "temperature": 1.0, "seed": 3)"),
      line("e", "hot", R"(, "temperature": 1.0, "seed": 4)"),
  };
  const StageAnswer alone = generate(inputs, 1);
  const StageAnswer together = generate(inputs, 4);
  EXPECT_EQ(alone.code, 0);
  ASSERT_EQ(alone.lines.size(), inputs.size());
  EXPECT_EQ(alone.lines, together.lines);
  EXPECT_EQ(alone.lines[1]["id"], "b");
  for (const Json& answer : alone.lines) {
    EXPECT_LE(answer["response_token_ids"].size(), 12u);
    EXPECT_FALSE(answer["prompt_token_ids"].empty());
    EXPECT_TRUE(answer["text"].is_string());
    EXPECT_TRUE(answer["finish_reason"] == "stop" || answer["response_token_ids"].size() == 12u)
        << answer.dump();
  }
  EXPECT_NE(alone.lines[3]["response_token_ids"], alone.lines[4]["response_token_ids"])
      << "the seed is the line's own";
  EXPECT_EQ(generate(inputs, 1, "native").lines, alone.lines);
  EXPECT_EQ(generate(inputs, 4, "native").lines, alone.lines);
}

TEST(GenerateStage, ABadLineFailsAlone) {
  const StageAnswer answer = generate(
      {
          line("a", "fine"),
          line("b", "typo", R"(, "temprature": 1)"),
          line("c", "cold", R"(, "temperature": -1)"),
          line("d", "no such picture", R"(, "images": ["/nowhere.png"])"),
          "{",
          line("f", "fine"),
      },
      6);
  EXPECT_EQ(answer.code, 3);
  ASSERT_EQ(answer.lines.size(), 6u);
  EXPECT_FALSE(answer.lines[0].contains("error"));
  EXPECT_NE(answer.lines[1]["error"]["fix"].get<std::string>().find("temperature"),
            std::string::npos);
  EXPECT_EQ(answer.lines[2]["error"]["kind"], "config");
  EXPECT_EQ(answer.lines[3]["error"]["kind"], "environment");
  EXPECT_TRUE(answer.lines[4].contains("error"));
  EXPECT_FALSE(answer.lines[5].contains("error"));
}

TEST(GenerateStage, GuardsAgainstRepetition) {
  const auto with_guard = [](const std::string& id, const std::string& members) {
    return line(id, "x", R"(, "repeat_terminate": {"enabled": true, )" + members + "}");
  };
  const StageAnswer answer =
      generate({with_guard("a", R"("min_new_tokens": 5, "max_consecutive_token_repeats": 1)"),
                with_guard("b", R"("ngram": 5)"), with_guard("c", R"("max_object_keys": null)")},
               3);
  EXPECT_EQ(answer.lines[0]["finish_reason"], "repeat");
  EXPECT_EQ(answer.lines[0]["response_token_ids"].size(), 5u);
  EXPECT_TRUE(answer.lines[1].contains("error"));
  EXPECT_FALSE(answer.lines[2].contains("error"));
}

TEST(GenerateStage, RefusesBackendsAndDtypesBeforeLoadingAnything) {
  StageOptions options;
  options.model_dir = "/nowhere";
  options.backend = "vllm";
  EXPECT_EQ(test::catch_user_error([&] { make_generate_stage(options); }).kind(),
            ErrorKind::kEnvironment);
  options.backend = "nativ";
  EXPECT_EQ(test::catch_user_error([&] { make_generate_stage(options); }).kind(),
            ErrorKind::kConfig);
  options = {};
  options.model_dir = model_dir();
  options.dtype = "float16";
  EXPECT_EQ(test::catch_user_error([&] { make_generate_stage(options); }).kind(),
            ErrorKind::kConfig);
}

}  // namespace rematch
