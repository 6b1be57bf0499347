// Sizes that annotations state are compared with the image file, in every form and however written.
#include <filesystem>
#include <functional>

#include "import/import_dir.h"

namespace rematch {
namespace {

/// A form with one image, whose annotation states the sides (JSON values, or texts of cells).
struct Form {
  const char* name;
  std::function<ForeignSet(const test::ImportDir&, const std::string& width,
                           const std::string& height)>
      read;
};

class Sizes : public test::ImportDir {
 public:
  using test::ImportDir::path;
  using test::ImportDir::write;

 protected:
  void remove_annotations() const {
    for (const char* name : {"a.json", "a.xml", "train.json"}) std::filesystem::remove(path(name));
  }
};

std::string unquoted(std::string text) {
  std::erase(text, '"');
  return text == "null" ? "" : text;
}

std::string sides(const std::string& width, const std::string& height) {
  return R"("width": )" + width + R"(, "height": )" + height;
}

const Sizes& of(const test::ImportDir& dir) { return static_cast<const Sizes&>(dir); }

const Form kForms[] = {
    {"coco",
     [](const auto& dir, const auto& w, const auto& h) {
       return read_coco_files(
           {of(dir).write("train.json", R"({"images": [{"id": 1, "file_name": "a.png", )" +
                                            sides(w, h) +
                                            R"(}], "categories": [], "annotations": []})")},
           {});
     }},
    {"labelme",
     [](const auto& dir, const auto& w, const auto& h) {
       of(dir).write("a.json", R"({"shapes": [], "imagePath": "a.png", "imageWidth": )" + w +
                                   R"(, "imageHeight": )" + h + "}");
       return read_labelme_dir({of(dir).path("")}, {});
     }},
    {"voc",
     [](const auto& dir, const auto& w, const auto& h) {
       of(dir).write("a.xml", "<annotation><size><width>" + unquoted(w) + "</width><height>" +
                                  unquoted(h) + "</height></size></annotation>");
       return read_voc_dir({of(dir).path("")}, {});
     }},
    {"hf",
     [](const auto& dir, const auto& w, const auto& h) {
       return read_hf_files(
           {of(dir).write("train.jsonl",
                          R"({"file_name": "a.png", "objects": [], )" + sides(w, h) + "}")},
           {});
     }},
    {"chat",
     [](const auto& dir, const auto& w, const auto& h) {
       return read_chat_files(
           {of(dir).write("train.jsonl",
                          R"({"images": ["a.png"], "messages": [{"role": "user", "content": "x"},)"
                          R"({"role": "assistant", "content": "[]"}], )" +
                              sides(w, h) + "}")},
           {});
     }},
    {"csv, first row",
     [](const auto& dir, const auto& w, const auto& h) {
       return read_csv_files(
           {of(dir).write("train.csv", "filename,width,height,xmin,ymin,xmax,ymax,class\na.png," +
                                           unquoted(w) + "," + unquoted(h) +
                                           ",1,1,9,9,cat\na.png,200,100,1,1,9,9,cat\n")},
           {});
     }},
    {"csv, last row", [](const auto& dir, const auto& w, const auto& h) {
       return read_csv_files(
           {of(dir).write("train.csv",
                          "filename,width,height,xmin,ymin,xmax,ymax,class\na.png,200,100,1,1,9,9,"
                          "cat\na.png,,,1,1,9,9,cat\na.png," +
                              unquoted(w) + "," + unquoted(h) + ",1,1,9,9,cat\n")},
           {});
     }}};

}  // namespace

TEST_F(Sizes, AreComparedInEveryFormHoweverTheyAreWritten) {
  write_image("a.png");
  for (const Form& form : kForms) {
    for (const auto& [width, height] : std::vector<std::pair<const char*, const char*>>{
             {"200", "100"}, {"\"200\"", "\"100\""}, {"200", "null"}, {"null", "\"100\""}}) {
      const WrittenSet written = convert_set(form.read(*this, width, height));
      EXPECT_EQ(written.num_records(), 1) << form.name << width << height;
    }
    for (const auto& [width, height] :
         std::vector<std::pair<const char*, const char*>>{{"100", "50"},
                                                          {"\"100\"", "\"50\""},
                                                          {"100", "null"},
                                                          {"null", "50"},
                                                          {"\"100\"", "null"}}) {
      const Problem problem =
          test::problem_of([&] { convert_set(form.read(*this, width, height)); });
      EXPECT_NE(problem.what.find(reason::kImageSize), std::string::npos)
          << form.name << width << height << problem.what;
    }
    remove_annotations();
  }
}

TEST_F(Sizes, ThatAreNoNumbersAreRefusedInEveryForm) {
  write_image("a.png");
  for (const Form& form : kForms) {
    for (const auto& [width, height] : std::vector<std::pair<const char*, const char*>>{
             {"\"200px\"", "100"}, {"200", "\"?\""}, {"true", "100"}, {"[200]", "100"}}) {
      const Problem problem =
          test::problem_of([&] { convert_set(form.read(*this, width, height)); });
      EXPECT_NE(problem.what.find(reason::text_of(reason::kSizeUnreadable)), std::string::npos)
          << form.name << width << height << problem.what;
      EXPECT_NE(problem.fix.find("numbers of pixels"), std::string::npos) << problem.fix;
    }
    const WrittenSet written = convert_set(form.read(*this, "\"\"", "0"));
    EXPECT_EQ(written.num_records(), 1) << form.name << ": none is given";
    remove_annotations();
  }
}

TEST_F(Sizes, OfAMaskAreNumbersToo) {
  write_image("a.png");
  const std::string file =
      write("train.json", test::coco("a.png", R"({"image_id": 1, "category_id": 7,
            "bbox": [20, 10, 100, 50], "segmentation": {"counts": "", "size": ["100px", 200]}})"));
  const Problem problem = test::problem_of([&] { convert_set(read_coco_files({file}, {})); });
  EXPECT_NE(problem.what.find("a side of \"100px\""), std::string::npos) << problem.what;
}

}  // namespace rematch
