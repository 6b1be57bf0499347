// Forms that look like another one: drafts before answers, keypoints, angles, other units.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "import/import_dir.h"

namespace rematch {
namespace {

class Forms : public test::ImportDir {
 protected:
  Forms() { write_image("a.png"); }

  ForeignSet read_answer_of(const std::string& answer, const Json& more = Json::object()) {
    Json record = {{"messages",
                    {{{"role", "user"}, {"content", question_}},
                     {{"role", "assistant"}, {"content", answer}}}},
                   {"images", {"a.png"}}};
    record.update(more);
    return read_chat_files({write("train.jsonl", record.dump() + "\n")}, {});
  }
  /// Names of the objects of an answer, joined by commas.
  std::string names_of(const std::string& answer, const Json& more = Json::object()) {
    std::string names;
    const ForeignSet set = read_answer_of(answer, more);
    for (const ForeignObject& object : set.splits.at("train")[0].objects)
      names += (names.empty() ? "" : ",") + object.desc;
    return names;
  }
  std::string reason_of(const std::string& answer, const Json& more = Json::object()) {
    try {
      const ForeignSet set = read_answer_of(answer, more);
      const ForeignImage& image = set.splits.at("train")[0];
      if (image.defect) return image.defect->reason + ": " + image.defect->place;
      return image.lost.empty() ? "" : image.lost[0].reason;
    } catch (const UserError& error) {
      return error.what();
    }
  }
  /// The error of a YOLO set with these label files.
  std::string yolo_refusal(const std::vector<std::string>& files) {
    for (size_t i = 0; i < files.size(); ++i) {
      write_image("images/" + std::to_string(i) + ".png");
      write("labels/" + std::to_string(i) + ".txt", files[i]);
    }
    const std::string yaml = write("set.yaml", "train: images\nnames: [cat]\n");
    try {
      read_yolo_set({yaml}, {});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::string question_ = "<image>Find all.";
};

constexpr const char* kCat = R"([{"bbox_2d": [100, 100, 500, 500], "label": "cat"}])";

}  // namespace

TEST_F(Forms, AGeometryOutsideTheFirstListIsNotLostInSilence) {
  const std::string cat = kCat;
  for (const std::string& text :
       {std::string(R"([] {"bbox": [600, 600, 700, 700], "label": "dog"})"),
        std::string("[100, 100, 500, 500]\n[600, 600, 700, 700]"),
        std::string(
            R"(Cats: [{"bbox": [1, 1, 5, 5], "label": "cat"}] Dogs: [{"bbox": [6, 6, 7, 7]}])"),
        cat + "\nand a dog at [600, 600, 700, 700]", cat + R"( {"point": [1, 2], "label": "dog"})",
        cat + R"( {"poly": [1, 1, 9, 1, 9, 9], "label": "dog"})"})
    EXPECT_NE(reason_of(text).find("outside the first list"), std::string::npos) << text;
  EXPECT_NE(reason_of("<ref>cat</ref><box>(1,1),(5,5)</box><|point_start|>(6,6)<|point_end|>")
                .find(reason::kNoBox),
            std::string::npos);
}

TEST_F(Forms, MarksOfADraftAreNotObjects) {
  const std::string draft = "<think>maybe <ref>dog</ref><box>(1,1),(20,20)</box></think>";
  EXPECT_EQ(names_of(draft + "<ref>cat</ref><box>(100,100),(500,500)</box>"), "cat");
  EXPECT_EQ(names_of(draft + kCat), "cat");
  EXPECT_NE(reason_of("<think><ref>dog</ref><box>(1,1),(20,20)</box>").find("think block"),
            std::string::npos);
}

TEST_F(Forms, ANameInMarksOfTheQuestionIsThatOfItsBoxes) {
  const std::string box = "<|box_start|>(101,201),(150,266)<|box_end|>";
  question_ = "<image>Find the <|object_ref_start|>sheep<|object_ref_end|> in the image";
  EXPECT_EQ(names_of(box), "sheep");
  EXPECT_EQ(read_answer_of(box).splits.at("train")[0].prompt, "Find the sheep in the image");
  question_ = "<image>Find <ref>sheep</ref> and <ref>dogs</ref>";
  EXPECT_EQ(names_of(box), "");
}

TEST_F(Forms, PlaceholdersOfADraftUseUpTheirBoxes) {
  const Json objects = {{"ref", {"dog", "cat"}}, {"bbox", {{1, 1, 9, 9}, {10, 10, 50, 50}}}};
  const std::string answer = "<think><ref-object><bbox>, no</think>I see <ref-object><bbox>";
  const ForeignSet set = read_answer_of(answer, {{"objects", objects}});
  const std::vector<ForeignObject>& found = set.splits.at("train")[0].objects;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].desc, "cat");
  EXPECT_EQ(found[0].x0, 10);
}

TEST_F(Forms, AnAnswerMarkedAsBadIsLeftOut) {
  EXPECT_NE(reason_of(kCat, {{"label", false}}).find("marked as a bad answer"), std::string::npos);
  EXPECT_NE(reason_of(kCat, {{"kto_tag", false}}).find("marked as a bad answer"),
            std::string::npos);
  EXPECT_EQ(names_of(kCat, {{"label", true}}), "cat");
}

TEST_F(Forms, AnswersThatTrainersLeaveOutAreLeftOut) {
  const Json user = {{"role", "user"}, {"content", "<image>Find all."}};
  const Json more = {{"role", "user"}, {"content", "No, the dog."}};
  const Json dog = {{"role", "assistant"},
                    {"content", R"([{"bbox_2d": [1, 1, 9, 9], "label": "dog"}])"}};
  for (const Json& mark : {Json{{"loss", false}}, Json{{"weight", 0}}}) {
    Json cat = {{"role", "assistant"}, {"content", kCat}};
    cat.update(mark);
    const Json record = {{"messages", {user, cat, more, dog}}, {"images", {"a.png"}}};
    const WrittenSet written =
        convert_set(read_chat_files({write("train.jsonl", record.dump())}, {}));
    EXPECT_EQ(test::records_lost(written, reason::kOtherUse), 1) << mark;
    EXPECT_EQ(this->written("train").samples()[0].objects[0].desc, "dog") << mark;
  }
}

TEST_F(Forms, OneTextWithoutBoxesLeavesOutItsAnswerOnly) {
  const Json record = {
      {"conversations",
       {{{"from", "human"}, {"value", "<image>\nDescribe it."}},
        {{"role", "gpt"}, {"content", "The cupboards are white."}},
        {{"from", "human"}, {"value", "And the floor?"}},
        {{"from", "gpt"}, {"value", R"([{"bbox_2d": [1, 1, 9, 9], "label": "floor"}])"}}}},
      {"image", "a.png"}};
  const WrittenSet written =
      convert_set(read_chat_files({write("train.jsonl", record.dump())}, {}));
  EXPECT_EQ(test::records_lost(written, reason::kNotAList), 1);
  EXPECT_EQ(this->written("train").samples()[0].objects[0].desc, "floor");
}

TEST_F(Forms, PartsWithNullsAreRead) {
  const Json image = {{"type", "image"}, {"text", nullptr}, {"image", "a.png"}};
  const Json text = {{"type", "text"}, {"text", "Find all."}, {"image", nullptr}};
  const Json answer = {{"type", "text"}, {"text", kCat}, {"image", nullptr}};
  const Json record = {{"messages",
                        {{{"role", "user"}, {"content", {image, text}}},
                         {{"role", "assistant"}, {"content", Json::array({answer})}}}}};
  const ForeignSet set = read_chat_files({write("train.jsonl", record.dump())}, {});
  EXPECT_EQ(set.splits.at("train")[0].prompt, "Find all.");
  EXPECT_EQ(set.splits.at("train")[0].objects.size(), 1u);
}

TEST_F(Forms, ToolsVideosAndOtherImagesAreNamed) {
  const auto expect = [&](const std::string& answer, const Json& more, const char* reason) {
    EXPECT_NE(reason_of(answer, more).find(reason::text_of(reason)), std::string::npos)
        << answer << more;
  };
  expect("<tool_call>{\"bbox_2d\": [1, 1, 9, 9], \"label\": \"z\"}</tool_call>", Json::object(),
         "<tool_call>");
  expect(kCat, {{"videos", {"a.mp4"}}}, "it has a video");
  EXPECT_EQ(names_of(kCat, {{"video", ""}, {"videos", Json::array()}}), "cat");
  question_ = "<image><image>Find all.";
  expect(kCat, Json::object(), "images: 1, marks of images: 2");
  question_ = "<img>a.png</img>Find all.";
  expect(kCat, Json::object(), "<img>");
}

TEST_F(Forms, ABoxInsideAnEntryIsNotLostInSilence) {
  for (const char* parts : {R"("children": [{"bbox_2d": [1, 1, 5, 5], "label": "b"}])",
                            R"("helmet": {"bbox": [1, 1, 5, 5]})"}) {
    const std::string entry = R"([{"bbox_2d": [1, 1, 9, 9], "label": "a", )" + std::string(parts);
    EXPECT_EQ(reason_of(entry + "}]"), reason::kInnerBox) << parts;
  }
  EXPECT_EQ(reason_of(R"({"objects": [{"bbox_2d": [1, 1, 9, 9], "label": "a"}]})"),
            reason::kInnerBox);
}

TEST_F(Forms, NamesBehindTheirBoxesAreNotThoseOfTheNextOnes) {
  EXPECT_EQ(reason_of("<box>(1,1),(5,5)</box><ref>cat</ref><box>(6,6),(9,9)</box><ref>dog</ref>"),
            reason::kLateName);
  EXPECT_EQ(reason_of("<ref>cat</ref><box>(1,1),(5,5)</box> and <ref>dog</ref> are here"),
            reason::kLateName);
}

TEST_F(Forms, AnAnswerOfAPointIsNotAnObject) {
  for (const char* box : {"[0, 0, 0, 0]", "[300, 300, 300, 300]"}) {
    const ForeignSet set =
        read_answer_of(R"([{"bbox_2d": )" + std::string(box) + R"(, "label": "mug"}])");
    EXPECT_NE(test::problem_of([&] { convert_set(set); }).fix.find("an empty list"),
              std::string::npos)
        << box;
  }
}

TEST_F(Forms, SidesInAnswersAreRefusedUntilTheyAreNamed) {
  std::string lines;
  for (const char* box : {"[100,200,50,40]", "[300,100,90,80]", "[20,30,400,300]"}) {
    const Json record = {
        {"image", "a.png"},
        {"conversations",
         {{{"from", "human"}, {"value", "<image>Find"}},
          {{"from", "gpt"},
           {"value", R"([{"bbox": )" + std::string(box) + R"(, "label": "cat"}])"}}}}};
    lines += record.dump() + "\n";
  }
  const std::string file = write("train.jsonl", lines);
  const auto convert = [&](const ImportOptions& options) {
    convert_set(read_chat_files({file}, options), options);
  };
  EXPECT_NE(test::problem_of([&] { convert({}); }).fix.find("--boxes xywh"), std::string::npos);
  convert({.boxes = BoxForm::kSides});
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 200, 150, 240}}));
}

TEST_F(Forms, CrowdsOfHuggingFaceAreNotObjects) {
  for (const char* key : {"iscrowd", "is_crowd"}) {
    const Json crowd = {{"bbox", {20, 10, 50, 50}}, {"category", "people"}, {key, 1}};
    const Json cat = {{"bbox", {20, 10, 50, 50}}, {"category", "cat"}, {key, 0}};
    const Json record = {{"file_name", "a.png"}, {"objects", {crowd, cat}}};
    const ForeignSet set = read_hf_files({write("metadata.jsonl", record.dump() + "\n")}, {});
    const auto& [split, images] = *set.splits.begin();
    ASSERT_EQ(images[0].objects.size(), 1u) << key;
    EXPECT_EQ(images[0].objects[0].desc, "cat");
  }
}

TEST_F(Forms, ABoxInSharesAmongPixelsIsLeftOut) {
  const std::string boxes = R"({"image_id": 1, "category_id": 7, "bbox": [0.1, 0.1, 0.4, 0.4]},
                              {"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50]})";
  const ForeignSet set = read_coco_files({write("train.json", test::coco("a.png", boxes))}, {});
  const Problem problem = test::problem_of([&] { convert_set(set); });
  EXPECT_NE(problem.what.find("in shares"), std::string::npos) << problem.what;
}

TEST_F(Forms, BoxesOfAnotherScaleAreRefusedNotClipped) {
  const auto box = [](const std::string& numbers) {
    return R"({"image_id": 1, "category_id": 7, "bbox": [)" + numbers + "]}";
  };
  const std::string all =
      box("600, 700, 300, 250") + "," + box("10, 10, 50, 50") + "," + box("500, 50, 300, 400");
  ForeignSet set = read_coco_files({write("train.json", test::coco("a.png", all))}, {});
  const Problem problem = test::problem_of([&] { convert_set(set); });
  EXPECT_NE(problem.what.find("2 of 3 boxes extend far beyond"), std::string::npos) << problem.what;
  EXPECT_NE(problem.fix.find("--boxes"), std::string::npos) << problem.fix;
  set.assumed_form = {};  // as Pascal VOC, whose import has no such option
  const Problem corners = test::problem_of([&] { convert_set(set); });
  EXPECT_EQ(corners.fix.find("--boxes"), std::string::npos) << corners.fix;
}

TEST_F(Forms, KeypointsWithoutTheirShapeAreNotOutlines) {
  const std::string three = "0 0.5 0.5 0.4 0.4 0.45 0.45 0.55 0.45 0.55 0.55\n";
  EXPECT_NE(yolo_refusal({three}).find("kpt_shape"), std::string::npos);
  EXPECT_NE(yolo_refusal({"0 0.5 0.5 0.4 0.4 0.45 0.45 2\n"}).find("kpt_shape"), std::string::npos);
  const std::string flags = "0 0.5 0.5 0.4 0.4 0.45 0.45 2 0.5 0.5 2\n";
  EXPECT_NE(yolo_refusal({flags, flags}).find("kpt_shape"), std::string::npos);
}

TEST_F(Forms, OutlinesAreNotKeypoints) {
  const std::string pentagon = "0 0.5 0.5 0.6 0.5 0.65 0.6 0.55 0.7 0.45 0.6\n",
                    corner = "0 0.1 0.1 0.2 0.1 0.22 0.2 0.15 0.25 0.05 0.2\n";
  EXPECT_EQ(yolo_refusal({pentagon, corner}), "");
}

TEST_F(Forms, ANameIsFoundInEitherFormOfItsAccents) {
  write_image("caf\u00e9.png");
  write("train.json", test::coco("cafe\u0301.png"));
  const WrittenSet written = convert_set(read_coco_files({path("train.json")}, {}));
  EXPECT_EQ(written.splits.at(0).num_boxes, 1);
}

TEST_F(Forms, ANaNIsRefusedWithTheCommandThatMakesItNull) {
  const auto with_box = [&](const std::string& number) {
    return write("train.json",
                 test::coco("a.png", R"({"image_id": 1, "category_id": 7, "bbox": [)" + number +
                                         R"(, 10, 100, 50]}, {"image_id": 1, "category_id": 7,
                                         "bbox": [20, 10, 100, 50]})"));
  };
  const std::string bad = with_box("NaN");
  EXPECT_NE(test::problem_of([&] { read_coco_files({bad}, {}); }).fix.find("null"),
            std::string::npos);
  const ImportOptions drop{.drop_unreadable = true};
  const WrittenSet written = convert_set(read_coco_files({with_box("null")}, drop), drop);
  EXPECT_EQ(test::objects_lost(written, reason::kNoBox), 1);
}

TEST_F(Forms, CopiesOfMacOSAreNotAnnotations) {
  write_image("train/b.png");
  write("train/._b.png", "no image");
  write("train/._annotations.coco.json", "no JSON");
  write("train/annotations.coco.json", test::coco("b.png"));
  const WrittenSet written = convert_set(read_coco_files({path("")}, {}));
  EXPECT_EQ(written.num_records(), 1);
  EXPECT_TRUE(written.ledger.records().empty());
}

TEST_F(Forms, InstancesAreTakenFromTheDirectoryOfCOCO) {
  write("annotations/captions_train2017.json", "{}");
  write("annotations/person_keypoints_train2017.json", "{}");
  write("annotations/instances_train2017.json", test::coco("a.png"));
  const ForeignSet set = read_coco_files({path("annotations")}, {});
  EXPECT_EQ(set.sources.size(), 1u);
}

TEST_F(Forms, ALineOfAYoloListIsFoundUnderOtherFolders) {
  write_image("set/images/train/a.png");
  write("set/labels/train/a.txt", "0 0.35 0.35 0.5 0.5\n");
  const std::string yaml = write("set/data.yaml", "path: .\ntrain: train.txt\nnames: [cat]\n");
  for (const char* line : {"data/images/train/a.png", "images\\train\\a.png",
                           "/content/x/images/train/a.png", "./images/train/a.png"}) {
    write("set/train.txt", std::string(line) + "\n");
    const ForeignSet set = read_yolo_set({yaml}, {});
    EXPECT_EQ(set.splits.at("train")[0].objects.size(), 1u) << line;
  }
}

TEST_F(Forms, ATaskOfCvatIsNamed) {
  write("annotations/task.xml",
        "<annotations><image id=\"0\" name=\"a.png\"></image></annotations>");
  const Problem problem = test::problem_of([&] { read_voc_dir({path("")}, {}); });
  EXPECT_NE(problem.fix.find("CVAT"), std::string::npos) << problem.fix;
}

}  // namespace rematch
