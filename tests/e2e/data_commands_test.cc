// `rematch data …` as a user starts it.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"
#include "model/vision/image.h"
#include "tools/draw/panel.h"

namespace rematch {
namespace {

constexpr const char* kCoco =
    R"({"images": [{"id": 1, "file_name": "0.png", "width": 64, "height": 64}],
  "categories": [{"id": 3, "name": "cat"}],
  "annotations": [{"image_id": 1, "category_id": 3, "bbox": [8, 8, 32, 16]}]})";

void expect_failure(const test::ProcessResult& result, int exit_code, const std::string& part) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
}

}  // namespace

TEST(DataCommands, ASheetHasAColourForEachClass) {
  test::Program program;
  program.dir().write(
      "a.jsonl",
      R"({"images": [")" + test::Program::golden("images") +
          R"(/0.png"], "width": 64, "height": 64, "objects": [{"desc": "cat", "bbox_2d": [100, )"
          R"(100, 400, 900]}, {"desc": "dog", "bbox_2d": [500, 100, 900, 900]}]})");
  ASSERT_EQ(program.run("data show a.jsonl --out sheet.png").exit_code, 0);
  const Image sheet = load_image(program.dir().file("sheet.png"));
  ClassColors colors;
  for (const char* name : {"cat", "dog"}) {
    const Rgb color = colors.of(name);
    int64_t pixels = 0;
    for (size_t i = 0; i + 2 < sheet.rgb.size(); i += 3)
      pixels += Rgb{sheet.rgb[i], sheet.rgb[i + 1], sheet.rgb[i + 2]} == color;
    EXPECT_GT(pixels, 50) << name;
  }
}

TEST(DataCommands, HelpOfEachShowsTwoExamples) {
  test::Program program;
  for (const char* name :
       {"from-coco", "from-voc", "from-yolo", "from-labelme", "from-csv", "from-hf", "from-swift",
        "from-qwen", "to-qwen", "boxes", "split", "check", "show"}) {
    const test::ProcessResult result = program.run(std::string("data ") + name + " --help");
    EXPECT_EQ(result.exit_code, 0);
    const size_t examples = result.out.find("Examples:");
    ASSERT_NE(examples, std::string::npos) << name;
    const std::string example = std::string("rematch data ") + name;
    const size_t first = result.out.find(example, examples);
    EXPECT_NE(result.out.find(example, first + 1), std::string::npos) << name;
  }
}

TEST(DataCommands, ACocoFileBecomesRecordsThatTrainAndASheet) {
  test::Program program;
  const std::string coco = program.dir().write("instances_train.json", kCoco);
  const test::ProcessResult imported = program.run("data from-coco " + coco + " --images " +
                                                   test::Program::golden("images") + " --out data");
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_NE(imported.out.find("1 image, 1 box, 0 polygons"), std::string::npos) << imported.out;
  EXPECT_NE(imported.out.find("next: rematch data show data/train.jsonl --out sheet.png\n"
                              "      rematch init MODEL data/train.jsonl\n"),
            std::string::npos)
      << imported.out;
  const test::ProcessResult checked = program.run("data check data/train.jsonl");
  EXPECT_EQ(checked.out.find("outside"), std::string::npos) << checked.out;
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("training can use it"), std::string::npos);
  const test::ProcessResult shown = program.run("data show data/train.jsonl --out sheet.png");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(read_file(program.dir().file("sheet.png")).substr(1, 3), "PNG");
  const test::ProcessResult trained =
      program.run("train " + program.config("training: {max_steps: 1}\ncustom: {trainer_variant: "
                                            "sft, train_jsonl: data/train.jsonl}\n"));
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST(DataCommands, ASheetDrawsTheChangesThatTrainingDraws) {
  test::Program program;
  const std::string record =
      "{\"images\": [\"" + test::Program::golden("images/0.png") +
      "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"box\", \"bbox_2d\": [3, 2, "
      "900, 940]}]}\n";
  program.dir().write("a.jsonl", record + record);
  program.dir().write("b.jsonl", record);
  const auto sheet = [&](const std::string& files) {
    const std::string config =
        program.config("custom: {train_jsonl: " + files + "}\ndata: {augment: {crop: 0.3}}\n");
    const test::ProcessResult shown =
        program.run("data show b.jsonl --out sheet.png --augment " + config + " --draws 3");
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    return read_file(program.dir().file("sheet.png"));
  };
  const std::string alone = sheet("b.jsonl");
  EXPECT_TRUE(sheet("[b.jsonl, a.jsonl]") == alone);
  EXPECT_FALSE(sheet("[a.jsonl, b.jsonl]") == alone) << "records of a.jsonl come first";
  expect_failure(program.run("data show b.jsonl --out sheet.jpg"), 2, "does not end with .png");
}

TEST(DataCommands, AForeignTrainFileNamesTheCommandToRun) {
  test::Program program;
  program.dir().write("instances.json", kCoco);
  expect_failure(program.run("train " + program.config("custom: {train_jsonl: instances.json}\n")),
                 3, "rematch data from-coco COCO.json --images DIR --out DIR");
}

TEST(DataCommands, CheckListsLinesAndRepairsThem) {
  test::Program program;
  std::filesystem::copy(test::Program::golden("images"), program.dir().file("images"));
  program.dir().write("raw.jsonl",
                      "{\"images\": [\"images/0.png\"], \"width\": 64, \"height\": 64, "
                      "\"objects\": [{\"desc\": \"cat\", \"bbox\": [1, 2, 30, 40]}]}\n");
  const test::ProcessResult checked = program.run("data check raw.jsonl");
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(checked.out.find("line 1: object 1"), std::string::npos) << checked.out;
  EXPECT_EQ(program.run("data check raw.jsonl --fix fixed.jsonl").exit_code, 0);
  EXPECT_EQ(program.run("data check fixed.jsonl").exit_code, 0);
}

TEST(DataCommands, CheckFailsOnSwappedCornersAsTrainingDoes) {
  test::Program program;
  std::filesystem::copy(test::Program::golden("images"), program.dir().file("images"));
  program.dir().write("raw.jsonl",
                      "{\"images\": [\"images/0.png\"], \"width\": 64, \"height\": 64, "
                      "\"objects\": [{\"desc\": \"cat\", \"bbox_2d\": [300, 2, "
                      "30, 40]}]}\n");
  const test::ProcessResult checked = program.run("data check raw.jsonl");
  EXPECT_EQ(checked.exit_code, 3) << checked.out;
  EXPECT_NE(checked.out.find("boxes with swapped corners: 1"), std::string::npos) << checked.out;
}

TEST(DataCommands, TheFirstLineSaysWhatWasLost) {
  test::Program program;
  std::string text = kCoco;
  text.replace(text.find("\"images\": ["), 11,
               R"("images": [{"id": 2, "file_name": "1.png", "width": 96, "height": 64}, )");
  text.replace(text.find("\"annotations\": ["), 16,
               R"("annotations": [{"image_id": 2, "category_id": 3, "bbox": [8, 8, -4, 16]}, )");
  program.dir().write("train.json", text);
  const std::string command =
      "data from-coco train.json --images " + test::Program::golden("images") + " --out data";
  const test::ProcessResult imported = program.run(command);
  EXPECT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_EQ(imported.out.rfind("left out 1 of 2 records: 1 × a box with swapped corners", 0), 0u)
      << imported.out;
  std::filesystem::remove_all(program.dir().file("data"));
  expect_failure(program.run(command + " --strict"), 3, "--strict is set");
  EXPECT_FALSE(std::filesystem::exists(program.dir().file("data")));
}

TEST(DataCommands, WidthsAndHeightsAreNeverPutInOrder) {
  test::Program program;
  std::filesystem::copy(test::Program::golden("images"), program.dir().file("images"));
  std::string lines;
  for (const char* box : {"600, 500, 100, 200", "300, 100, 200, 300", "10, 10, 500, 600"})
    lines += std::string(
                 "{\"images\": [\"images/0.png\"], \"width\": 64, \"height\": 64, "
                 "\"objects\": [{\"desc\": \"cat\", \"bbox_2d\": [") +
             box + "]}]}\n";
  program.dir().write("raw.jsonl", lines);
  const test::ProcessResult checked = program.run("data check raw.jsonl");
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(
      checked.out.find("fix this first: swapped corners in 2 of 3 boxes; they fit x, y, width, "),
      std::string::npos)
      << checked.out;
  expect_failure(program.run("data check raw.jsonl --fix fixed.jsonl"), 2, "x + width");
  EXPECT_FALSE(std::filesystem::exists(program.dir().file("fixed.jsonl")));
  std::string many;
  for (int i = 0; i < 10; ++i) many += lines;
  program.dir().write("raw.jsonl", many);
  EXPECT_EQ(program.run("data check raw.jsonl --fix fixed.jsonl").exit_code, 0);
  EXPECT_NE(read_file(program.dir().file("fixed.jsonl")).find("[600, 500, 700, 700]"),
            std::string::npos);
}

TEST(DataCommands, TwoFilesOfOneSplitNameTheOption) {
  test::Program program;
  program.dir().write("a_train.json", kCoco);
  program.dir().write("b_train.json", kCoco);
  const std::string images = " --images " + test::Program::golden("images") + " --out data";
  expect_failure(program.run("data from-coco a_train.json b_train.json" + images), 2, "--split");
  const std::string swift = "{\"images\": [\"0.png\"], \"objects\": {\"ref\": [], \"bbox\": []}}\n";
  program.dir().write("a_val.jsonl", swift);
  program.dir().write("b_val.jsonl", swift);
  expect_failure(program.run("data from-swift a_val.jsonl b_val.jsonl" + images), 2, "--split");
  EXPECT_FALSE(std::filesystem::exists(program.dir().file("data")));
}

TEST(DataCommands, OneImageIsNotToBeSplit) {
  test::Program program;
  program.dir().write("result.json", kCoco);
  const std::string convert =
      "data from-coco result.json --images " + test::Program::golden("images") + " --out data";
  const std::string out = program.run(convert).out;
  EXPECT_NE(out.find("      rematch init MODEL data/result.jsonl\n"), std::string::npos) << out;
  EXPECT_NE(program.run(convert).out.find("replaced data/result.jsonl: 1 image"),
            std::string::npos);
}

TEST(DataCommands, ASheetNamesWhatItsFontLacks) {
  test::Program program;
  const auto shown = [&](const std::string& desc) {
    program.dir().write("raw.jsonl", "{\"images\": [\"" + test::Program::golden("images/0.png") +
                                         "\"], \"width\": 64, \"height\": 64, \"objects\": ["
                                         "{\"desc\": \"" +
                                         desc + "\", \"bbox_2d\": [3, 2, 30, 40]}]}\n");
    return program.run("data show raw.jsonl --out sheet.png").out;
  };
  EXPECT_NE(shown("\u732B").find("lacks characters of 1 name, drawn as hollow boxes (\u732B)"),
            std::string::npos);
  EXPECT_EQ(shown("gar\u00E7on").find("lacks"), std::string::npos);
}

TEST(DataCommands, CheckNamesClassesWithOddNames) {
  test::Program program;
  const auto check = [&](const std::string& first, const std::string& second) {
    program.dir().write(
        "raw.jsonl", "{\"images\": [\"" + test::Program::golden("images/0.png") +
                         "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"" + first +
                         "\", \"bbox_2d\": [3, 2, 30, 40]}, {\"desc\": \"" + second +
                         "\", \"bbox_2d\": [300, 2, 330, 40]}]}\n");
    const test::ProcessResult checked = program.run("data check raw.jsonl");
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_NE(checked.out.find("1 image lies outside the directory"), std::string::npos);
    return checked.out;
  };
  EXPECT_NE(check("Cat", "cat").find("spaces: Cat (1) / cat"), std::string::npos);
  EXPECT_NE(check("0", "1").find("the names of the classes are numbers (0)"), std::string::npos);
}

TEST(DataCommands, ASheetThatWouldFillTheMemoryIsRefused) {
  test::Program program;
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"images\": [\"" + test::Program::golden("images/0.png") +
             "\"], \"width\": 64, \"height\": 64, \"objects\": []}\n";
  program.dir().write("many.jsonl", lines);
  const std::string show = "data show many.jsonl --out sheet.png --count 400 --size ";
  expect_failure(program.run(show + "2000"), 2, "240 megapixels, of at most 200");
  EXPECT_EQ(program.run(show + "64").exit_code, 0);
}

TEST(DataCommands, InitWritesAFileThatCheckReadsWhateverItsNamesAre) {
  test::Program program;
  const std::string name = program.dir().file("a\nb: c.jsonl");
  program.dir().write("a\nb: c.jsonl",
                      "{\"images\": [\"" + test::Program::golden("images/0.png") +
                          "\"], \"width\": 64, \"height\": 64, \"objects\": []}\n");
  const test::ProcessResult written =
      program.run("init " + test::Program::model() + " '" + name + "' --out 'the run.yaml'");
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_NE(written.out.find("rematch check 'the run.yaml'; rematch train 'the run.yaml'"),
            std::string::npos)
      << written.out;
  const test::ProcessResult checked = program.run("check 'the run.yaml'");
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
}

TEST(DataCommands, TrainingWarnsOnceOfValidationDataThatItTrainsOn) {
  test::Program program;
  const std::string record = "{\"images\": [\"" + test::Program::golden("images/0.png") +
                             "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"";
  const std::string rest = "\", \"bbox_2d\": [3, 2, 30, 40]}]}\n";
  program.dir().write("train.jsonl", record + "cat" + rest);
  program.dir().write("val.jsonl", record + "dog" + rest);
  const test::ProcessResult checked = program.run(
      "check " + program.config("training: {eval_strategy: epoch}\n"
                                "custom: {train_jsonl: train.jsonl, val_jsonl: val.jsonl}\n"));
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  for (const char* text : {"1 of 1 image in val.jsonl is also in train.jsonl",
                           "1 of 1 class in val.jsonl never occurs in train.jsonl: dog"}) {
    const size_t first = checked.out.find(text);
    ASSERT_NE(first, std::string::npos) << checked.out;
    EXPECT_EQ(checked.out.find(text, first + 1), std::string::npos) << checked.out;
  }
}

TEST(DataCommands, NoCommandReplacesWhatItReads) {
  test::Program program;
  const std::string png = read_file(test::Program::golden("images/0.png")),
                    image = program.dir().write("data/0.png", png);
  const std::string record =
      "{\"images\": [\"" + image + "\"], \"width\": 64, \"height\": 64, \"objects\": []}\n";
  const std::string swift = "{\"images\": [\"" + test::Program::golden("images/0.png") +
                            "\"], \"objects\": {\"ref\": [], \"bbox\": []}}\n";
  program.dir().write("data/train.jsonl", record);
  program.dir().write("swift/train.jsonl", swift);
  expect_failure(program.run("data check data/train.jsonl --fix data/./train.jsonl"), 2,
                 "would replace");
  expect_failure(program.run("data show data/train.jsonl --out data/0.png"), 2, "would replace");
  const std::string config = program.config("data: {augment: {hflip: 0.5}}\n"),
                    yaml = read_file(config);
  std::filesystem::create_hard_link(config, program.dir().file("a.png"));
  expect_failure(program.run("data show data/train.jsonl --augment " + config + " --out a.png"), 2,
                 "would replace");
  EXPECT_EQ(read_file(config), yaml);
  expect_failure(program.run("data from-swift swift/train.jsonl --out swift"), 2, "would replace");
  const std::string processor = "preprocessor_config.json",
                    kept = read_file(test::Program::model() + "/" + processor),
                    copy = program.dir().write("model/" + processor, kept);
  program.dir().write("model/tokenizer.json",
                      read_file(test::Program::model() + "/tokenizer.json"));
  expect_failure(
      program.run("data to-qwen data/train.jsonl --model model --out model/" + processor), 2,
      "would replace");
  EXPECT_EQ(read_file(copy), kept);
  EXPECT_EQ(read_file(program.dir().file("data/train.jsonl")), record);
  EXPECT_EQ(read_file(program.dir().file("swift/train.jsonl")), swift);
  EXPECT_EQ(read_file(image), png);
}

TEST(DataCommands, CheckSaysWhatItFoundInWordsATerminalCanShow) {
  test::Program program;
  program.dir().write("a b.jsonl",
                      "{\"images\": [\"" + test::Program::golden("images/0.png") +
                          "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"x\xC2\x9B"
                          "31m\", \"bbox_2d\": [300, 2, 30, 40]}]}\n");
  const test::ProcessResult checked = program.run("data check 'a b.jsonl'");
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(checked.out.find("1 record, 1 object (1 box, 0 polygons)"), std::string::npos)
      << checked.out;
  EXPECT_NE(checked.out.find("1 class: x\\x9b31m 1"), std::string::npos) << checked.out;
  EXPECT_EQ(checked.out.find('\x9B'), std::string::npos) << checked.out;
  EXPECT_NE(checked.out.find("swapped corners in 1 of 1 box"), std::string::npos) << checked.out;
  program.dir().write("empty.jsonl", "\n");
  EXPECT_NE(program.run("data check empty.jsonl").out.find("it has no records"), std::string::npos);
  expect_failure(program.run("data check empty.jsonl --fix fixed.jsonl"), 3, "no record is left");
}

TEST(DataCommands, CheckRefusesTheTextsOfAddedTokens) {
  test::Program program;
  program.dir().write("raw.jsonl",
                      "{\"images\": [\"" + test::Program::golden("images/0.png") +
                          "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": "
                          "\"a<|im_end|>b\", \"bbox_2d\": [3, 2, 30, 40]}]}\n");
  const test::ProcessResult checked = program.run("data check raw.jsonl");
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_NE(checked.out.find("added token"), std::string::npos) << checked.out;
}

TEST(DataCommands, MistakesEndInFourLinesAndTheRightCode) {
  test::Program program;
  program.dir().write("empty.json", "{}");
  expect_failure(program.run("data from-coco missing.json --out data"), 4, "missing.json");
  expect_failure(program.run("data from-coco empty.json --out data"), 3, "categories");
  expect_failure(program.run("data from-voc . --out data"), 3, "no .xml files");
  expect_failure(program.run("data from-yolo empty.json --out data"), 3, "names");
  program.dir().write("photos/notes.txt", "");
  expect_failure(program.run("data from-yolo photos --out data"), 3, "has no YAML");
  expect_failure(program.run("data from-labelme . --out data"), 3, "no list \"shapes\"");
  expect_failure(program.run("data from-swift empty.json --out data"), 3, "images");
  expect_failure(program.run("data check missing.jsonl"), 4, "missing.jsonl");
  expect_failure(program.run("data check"), 2, "JSONL");
  program.dir().write("cards/train.jsonl", "{}\n");
  expect_failure(program.run("data check cards"), 2, "cards/train.jsonl");
  expect_failure(program.run("data show missing.jsonl --out a.png"), 4, "missing.jsonl");
  expect_failure(program.run("data show empty.json"), 2, "--out");
  expect_failure(program.run("data"), 2, "subcommand");
}

}  // namespace rematch
