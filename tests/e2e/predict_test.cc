// `rematch predict` as a user starts it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "model/vision/upright.h"
#include "tools/draw/encode.h"

namespace rematch {
namespace {

std::vector<Json> answers_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(parse_json(line, "out"));
  return lines;
}

}  // namespace

TEST(Predict, AnswersAsEvaluationDoesWithThePromptStoredWithTheCheckpoint) {
  test::Program program;
  const std::string config = program.config(
      "template: {system: Say what is there.}\n"
      "custom: {user_prompt: Name everything, extra: {rollout_matching: "
      "{repetition_penalty: 1.3}}}\n"
      "training: {save_strategy: steps, save_steps: 2}\n");
  const test::ProcessResult trained = program.run("train " + config);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string checkpoint = "out/run/checkpoint-2";
  ASSERT_EQ(program
                .run("rollout " + config +
                     " --split val --out rollouts.jsonl --set model.model=" + checkpoint)
                .exit_code,
            0);
  const std::vector<Json> rollouts = answers_of(read_file(program.dir().file("rollouts.jsonl")));
  std::string images;
  for (const Json& rollout : rollouts) images += " " + rollout["images"][0].get<std::string>();
  const test::ProcessResult result =
      program.run("predict " + checkpoint + images + " --draw drawn");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err.find("rematch_prompt.json"), std::string::npos) << result.err;
  const std::vector<Json> predictions = answers_of(result.out);
  ASSERT_EQ(predictions.size(), rollouts.size());
  for (size_t i = 0; i < predictions.size(); ++i) {
    EXPECT_EQ(predictions[i]["text"], rollouts[i]["text"]);
    EXPECT_EQ(predictions[i]["status"], rollouts[i]["status"]);
    EXPECT_EQ(predictions[i]["objects"].size(), rollouts[i]["predictions"].size());
  }
  EXPECT_TRUE(std::filesystem::exists(program.dir().file("drawn/0000_0.png")));
}

TEST(Predict, DrawsAnImageWithTheLongestNameThatAFileMayHave) {
  test::Program program;
  // 251 bytes and ".png"; two bytes a character, so that a cut may not split one.
  std::string name = "x";
  while (name.size() < 251) name += "\u00E9";
  std::filesystem::copy_file(test::Program::golden("images/0.png"),
                             program.dir().file(name + ".png"));
  const test::ProcessResult result = program.run("predict " + test::Program::model() + " " + name +
                                                 ".png --draw drawn --max-new-tokens 4");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(answers_of(result.out)[0]["image"], name + ".png");
  const std::string drawn =
      std::filesystem::directory_iterator(program.dir().file("drawn"))->path().filename();
  EXPECT_EQ(drawn, "0000_" + name.substr(0, 199) + "….png");
}

TEST(Predict, ATemplateThatFailsIsOneErrorAndNotTheImages) {
  test::Program program;
  std::filesystem::copy(test::Program::model(), program.dir().file("model"));
  const std::string images =
      test::Program::golden("images/0.png") + " " + test::Program::golden("images/1.png");
  for (const auto& [source, what] : std::vector<std::pair<std::string, std::string>>{
           {"\n{{ raise_exception('no images here') }}", "chat_template.jinja:2"},
           {"no image", "the rendered prompt does not have one image pad per image"}}) {
    program.dir().write("model/chat_template.jinja", source);
    const test::ProcessResult result = program.run("predict model " + images);
    EXPECT_EQ(result.exit_code, 3) << what;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(what), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("error:"), result.err.rfind("error:")) << result.err;
  }
}

TEST(Predict, RecordsAndAddressesAreRefusedAsAnyOtherPath) {
  test::Program program;
  const auto predict = [&](const std::string& input) {
    return program.run("predict " + test::Program::model() + " " + input);
  };
  const test::ProcessResult records = predict(test::Program::golden("val.jsonl"));
  EXPECT_EQ(records.exit_code, 3);
  EXPECT_NE(records.err.find("val.jsonl"), std::string::npos) << records.err;
  const test::ProcessResult address = predict("https://example.org/a.jpg");
  EXPECT_EQ(address.exit_code, 4);
  EXPECT_NE(address.err.find("the image does not exist"), std::string::npos) << address.err;
}

TEST(Predict, ATerminalGetsTheBeginningOfAnAnswerThatCannotBeRead) {
  test::Program program;
  const std::string command = test::binary_path("bin/rematch") + " predict " +
                              test::Program::model() + " " + test::Program::golden("images/0.png") +
                              " --max-new-tokens 300";
  const std::string whole = program.run(command.substr(command.find("predict"))).out;
  ASSERT_EQ(whole.find("\"complete\""), std::string::npos) << whole;
  ASSERT_GT(whole.size(), 600u);
  const std::string shown = test::run_command("cd " + program.dir().path() + " && script -qec '" +
                                              command + "' /dev/null")
                                .out;
  const size_t text = shown.find("\"text\"");
  ASSERT_NE(text, std::string::npos) << shown;
  EXPECT_NE(shown.find("…", text), std::string::npos) << shown;
  EXPECT_LT(shown.find('}', text) - text, 450u) << "200 bytes, escaped as JSON";
}

TEST(Predict, ATerminalThatGetsPicturesGetsNoLines) {
  test::Program program;
  const std::string command = test::binary_path("bin/rematch") + " predict " +
                              test::Program::model() + " " + test::Program::golden("images/0.png") +
                              " --max-new-tokens 4";
  const auto shown = [&](const std::string& options) {
    return test::run_command("cd " + program.dir().path() + " && script -qec '" + command +
                             options + "' /dev/null")
        .out;
  };
  const std::string drawn = shown(" --draw drawn");
  EXPECT_EQ(drawn.find("\"objects\""), std::string::npos) << drawn;
  EXPECT_NE(drawn.find("drew 1 image into drawn; --out FILE writes the answers"), std::string::npos)
      << drawn;
  EXPECT_EQ(shown(" --draw drawn --out found.jsonl").find("--out FILE"), std::string::npos);
  EXPECT_EQ(answers_of(read_file(program.dir().file("found.jsonl"))).size(), 1u);
  EXPECT_NE(shown("").find("\"objects\""), std::string::npos);
}

TEST(Predict, APhotoThatIsStoredRotatedIsTurnedUpright) {
  test::Program program;
  const Image wide = load_image(test::Program::golden("images/1.png"));
  const std::string exif =
      std::string("Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06", 26) +
      std::string(6, '\0');
  program.dir().write("photo.jpg",
                      encode_jpeg(wide, 95).insert(2, std::string("\xFF\xE1\0\x22", 4) + exif));
  const Image tall = load_image(program.dir().file("photo.jpg"));
  program.dir().write("tall.png", encode_png(tall));
  const test::ProcessResult result = program.run(
      "predict " + test::Program::model() + " photo.jpg tall.png --draw drawn --max-new-tokens 8");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<Json> lines = answers_of(result.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["width"], 64);
  EXPECT_EQ(lines[0]["height"], 96);
  lines[0]["image"] = lines[1]["image"];
  EXPECT_EQ(lines[0], lines[1]);
  EXPECT_TRUE(read_file(program.dir().file("drawn/0000_photo.png")) ==
              read_file(program.dir().file("drawn/0001_tall.png")));
}

TEST(Predict, AnEmptyPromptIsNoPromptOfTheCheckpoint) {
  test::Program program;
  const std::string command = "predict " + test::Program::model() + " " +
                              test::Program::golden("images/0.png") + " --max-new-tokens 4";
  for (const char* option : {"--user", "--system"}) {
    const test::ProcessResult result = program.run(command + " " + option + " ''");
    EXPECT_EQ(result.exit_code, 2) << option;
    EXPECT_NE(result.err.find("the prompt is blank"), std::string::npos) << result.err;
  }
}

TEST(Predict, SeesImagesOfTheSizeThatTrainingSaw) {
  for (const char* tuner : {"full", "lora"}) {
    test::Program program;
    // Images of 4096 pixels and more become 1024; the base model's processor would leave them.
    std::filesystem::copy(test::Program::model(), program.dir().file("base"));
    const std::string processor = program.dir().file("base/preprocessor_config.json");
    Json settings = read_json_file(processor);
    settings["do_resize"] = true;
    settings["size"]["shortest_edge"] = 1024;
    program.dir().write("base/preprocessor_config.json", settings.dump());
    const std::string config = program.config(
        "model: {model: base}\ntemplate: {max_pixels: 1024}\ntraining: {learning_rate: 0.1, "
        "save_strategy: steps, save_steps: 2}\ntuner: {train_type: " +
        std::string(tuner) + ", lora_rank: 4}\n");
    const test::ProcessResult trained = program.run("train " + config);
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    std::string checkpoint = "out/run/checkpoint-2", images;
    EXPECT_EQ(read_json_file(program.dir().file(checkpoint + "/preprocessor_config.json"))["size"],
              Json({{"shortest_edge", 1024}, {"longest_edge", 1024}}));
    const std::string adapter = checkpoint;
    if (tuner == std::string("lora")) {
      ASSERT_EQ(program.run("merge " + checkpoint + " --out merged").exit_code, 0);
      checkpoint = "merged";
    }
    const auto rollouts = [&](const std::string& options) {
      const test::ProcessResult result =
          program.run("rollout " + config + " --split val --out rollouts.jsonl --set " +
                      "tuner.train_type=full --set model.model=" + checkpoint + options);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      return answers_of(read_file(program.dir().file("rollouts.jsonl")));
    };
    const std::vector<Json> expected = rollouts(""),
                            served = rollouts(" --set template.max_pixels=null"),
                            other = rollouts(" --set template.max_pixels=65536");
    EXPECT_NE(expected, other) << "the size of images changes no answer";
    EXPECT_EQ(expected, served);
    for (const Json& rollout : expected) images += " " + rollout["images"][0].get<std::string>();
    const test::ProcessResult found = program.run("predict " + checkpoint + images);
    ASSERT_EQ(found.exit_code, 0) << found.err;
    const std::vector<Json> predictions = answers_of(found.out);
    ASSERT_EQ(predictions.size(), expected.size());
    for (size_t i = 0; i < predictions.size(); ++i)
      EXPECT_EQ(predictions[i]["text"], expected[i]["text"]);
    EXPECT_EQ(program.run("predict " + adapter + images).out, found.out);
    const auto evaluated = [&](const std::string& options) {
      const test::ProcessResult result =
          program.run("eval " + config +
                      " --set tuner.train_type=full --set model.model=" + checkpoint + options);
      EXPECT_EQ(result.exit_code, 0) << result.err;
      const std::string name = std::filesystem::path(checkpoint).filename().string();
      return read_file(program.run_dir() + "/eval/" + name + ".samples.jsonl");
    };
    EXPECT_EQ(evaluated(""), evaluated(" --set template.max_pixels=null"));
  }
}

TEST(Predict, WritesCocoForADirectory) {
  test::Program program;
  const test::ProcessResult result =
      program.run("predict " + test::Program::model() + " " + test::Program::golden("images") +
                  " --format coco --out found.json --max-new-tokens 8");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find("built-in prompt"), std::string::npos) << result.err;
  const Json coco = read_json_file(program.dir().file("found.json"));
  EXPECT_EQ(coco["images"].size(), 8u);
  EXPECT_TRUE(coco.contains("annotations") && coco.contains("categories"));
}

TEST(Predict, AnAdapterAnswersAsItsMergedModel) {
  test::Program program;
  const std::string config = program.config(
      "tuner: {train_type: lora, lora_rank: 4}\ntraining: {learning_rate: 0.1, save_strategy: "
      "steps, save_steps: 2}\n");
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  ASSERT_EQ(program.run("merge out/run/checkpoint-2 --out merged").exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(program.dir().file("merged/rematch_prompt.json")));
  const std::string image = " " + test::Program::golden("images/0.png") + " --max-new-tokens 12";
  const test::ProcessResult merged = program.run("predict merged" + image);
  const test::ProcessResult adapter = program.run("predict out/run/checkpoint-2" + image);
  const test::ProcessResult both =
      program.run("predict " + test::Program::model() + " --adapter out/run/checkpoint-2" + image);
  ASSERT_EQ(adapter.exit_code, 0) << adapter.err;
  EXPECT_EQ(adapter.out, merged.out);
  EXPECT_EQ(both.out, merged.out);
  const test::ProcessResult run_dir =
      program.run("predict " + test::Program::model() + " --adapter out/run" + image);
  ASSERT_EQ(run_dir.exit_code, 0) << run_dir.err;
  EXPECT_EQ(run_dir.out, merged.out);
  EXPECT_NE(run_dir.err.find("taking out/run/checkpoint-2"), std::string::npos) << run_dir.err;
}

TEST(Predict, ImagesThatCannotBeReadDoNotEndTheOthers) {
  test::Program program;
  std::filesystem::create_directory(program.dir().file("photos"));
  const std::string good = read_file(test::Program::golden("images/0.png"));
  program.dir().write("photos/a.png", good);
  program.dir().write("photos/b.jpg", "");
  program.dir().write("photos/c.png", good.substr(0, good.size() / 2));
  program.dir().write("photos/d.png", good);
  program.dir().write("photos/e.jpg", "");
  program.dir().write("photos/f\u202Egpj.jpg", "");
  program.dir().write("photos/g.HEIC", "");
  program.dir().write("photos/h.gif", "");
  const std::string command =
      "predict " + test::Program::model() + " photos --max-new-tokens 8 --draw drawn";
  const test::ProcessResult result = program.run(command);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const std::vector<Json> lines = answers_of(result.out);
  ASSERT_EQ(lines.size(), 6u) << result.out;
  EXPECT_EQ(lines[5]["image"], "photos/f\u202Egpj.jpg");
  EXPECT_EQ((result.out + result.err).find("\u202E"), std::string::npos)
      << "turns a terminal's line";
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(lines[i]["status"], "unreadable");
    EXPECT_FALSE(lines[i]["error"].get<std::string>().empty());
  }
  EXPECT_EQ(lines[0]["text"], lines[3]["text"]);
  for (const char* part :
       {"photos/b.jpg", "photos/e.jpg", "photos/c.png", "download the file again", "drew 2 images",
        "passed over, which are not read: 1 .gif, 1 .heic"})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  EXPECT_EQ(result.err.find("record"), std::string::npos) << result.err;
  EXPECT_TRUE(std::filesystem::exists(program.dir().file("drawn/0003_d.png")));
  EXPECT_EQ(program.run(command + " --format coco --out found.json").exit_code, 3);
  EXPECT_EQ(read_json_file(program.dir().file("found.json"))["images"].size(), 2u);
}

TEST(Predict, AFileOfEarlierAnswersOutlivesWhatFails) {
  test::Program program;
  program.dir().write("found.jsonl", "earlier");
  const std::string image = test::Program::golden("images/0.png");
  EXPECT_EQ(program.run("predict nowhere " + image + " --out found.jsonl").exit_code, 4);
  EXPECT_EQ(read_file(program.dir().file("found.jsonl")), "earlier");
  const std::string pixels = read_file(image);
  program.dir().write("in.png", pixels);
  const test::ProcessResult replaced =
      program.run("predict " + test::Program::model() + " in.png --out ./in.png");
  EXPECT_EQ(replaced.exit_code, 2) << replaced.err;
  EXPECT_NE(replaced.err.find("the output would replace a file that is read"), std::string::npos)
      << replaced.err;
  EXPECT_EQ(read_file(program.dir().file("in.png")), pixels);
}

TEST(Predict, ARunDirectoryStandsForItsBestCheckpoint) {
  test::Program program;
  namespace fs = std::filesystem;
  const std::string model = test::Program::model();
  fs::create_directories(program.dir().file("run"));
  for (const char* step : {"2", "10"})
    fs::copy(model, program.dir().file(std::string("run/checkpoint-") + step),
             fs::copy_options::recursive);
  const std::string image = test::Program::golden("images/0.png");
  const test::ProcessResult newest = program.run("predict run --max-new-tokens 4 " + image);
  EXPECT_EQ(newest.exit_code, 0) << newest.err;
  EXPECT_NE(newest.err.find("taking run/checkpoint-10, the newest checkpoint of run"),
            std::string::npos)
      << newest.err;
  fs::create_directory_symlink("checkpoint-2", program.dir().file("run/best"));
  const test::ProcessResult best = program.run("predict run --max-new-tokens 4 " + image);
  EXPECT_NE(best.err.find("taking run/checkpoint-2, the best checkpoint of run"), std::string::npos)
      << best.err;
  EXPECT_EQ(best.out, newest.out);
}

TEST(Predict, HelpShowsTwoExamplesAndMistakesAreNamed) {
  test::Program program;
  const test::ProcessResult help = program.run("predict --help");
  EXPECT_EQ(help.exit_code, 0);
  const size_t first = help.out.find("rematch predict ", help.out.find("Examples:"));
  EXPECT_NE(help.out.find("rematch predict ", first + 1), std::string::npos);
  const test::ProcessResult missing =
      program.run("predict " + test::Program::model() + " nowhere.jpg");
  EXPECT_EQ(missing.exit_code, 4);
  EXPECT_NE(missing.err.find("nowhere.jpg"), std::string::npos);
  program.dir().write("empty/readme.txt", "");
  EXPECT_EQ(program.run("predict " + test::Program::model() + " empty").exit_code, 3);
  EXPECT_EQ(program.run("predict nomodel " + test::Program::golden("images/0.png")).exit_code, 4);
}

}  // namespace rematch
