// Annotations of one file per image: Pascal VOC, labelImg, labelMe.
#include <filesystem>
#include <functional>

#include "import/import_dir.h"

namespace rematch {
namespace {

const std::vector<int> kBins = {100, 100, 600, 600};
constexpr const char* kBox =
    "<bndbox><xmin>21</xmin><ymin>11</ymin><xmax>120</xmax><ymax>60</ymax></bndbox>";

std::string voc(const std::string& object, const std::string& filename = "a.png",
                const std::string& declaration = "") {
  return declaration + "<annotation><filename>" + filename + "</filename><object><name>cat</name>" +
         object + "</object></annotation>";
}

class VocDir : public test::ImportDir {
 protected:
  WrittenSet convert(const ImportOptions& options = {}) {
    return write_records(read_voc_dir(path("set"), options), out(), options);
  }
  void expect_refused(const std::string& xml, const std::string& word) {
    write("set/Annotations/a.xml", xml);
    const UserError error = test::catch_user_error([&] { read_voc_dir(path("set"), {}); });
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
};

class LabelMeDir : public test::ImportDir {
 protected:
  LabelMeDir() { write_image("set/a.png"); }
  static std::string shape(const std::string& type, const std::string& points) {
    return R"({"label": "cat", "shape_type": ")" + type + R"(", "points": )" + points + "}";
  }
  WrittenSet convert(const std::string& shapes, const ImportOptions& options = {}) {
    write("set/a.json", R"({"version": "5", "imagePath": "..\\photos\\a.png", "imageData": null,
      "imageWidth": 200, "imageHeight": 100, "shapes": [)" +
                            shapes + "]}");
    return write_records(read_labelme_dir(path("set"), options), out(), options);
  }
};

}  // namespace

TEST_F(VocDir, LabelImgsFolderHoldsEachXmlNextToItsImage) {
  write_image("set/a.png");
  write("set/a.xml", voc(kBox));
  convert();
  EXPECT_EQ(bins("train"), std::vector<std::vector<int>>{kBins});
  convert({.split = "val"});
  EXPECT_EQ(bins("val"), std::vector<std::vector<int>>{kBins});
}

TEST_F(VocDir, TheImageOfTheXmlsNameStandsInForOneThatIsNotThere) {
  write_image("set/renamed.PNG");
  write("set/renamed.xml", voc(kBox, "IMG_0001.jpg"));
  convert();
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kBins});
}

TEST_F(VocDir, FoldersOfSplitsAreSplits) {
  for (const std::string split : {"train", "valid"}) {
    write_image("set/" + split + "/a.png");
    write("set/" + split + "/a.xml", voc(kBox));
  }
  convert();
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(written("val").size(), 1);
  write("set/val/a.xml", voc(kBox));
  EXPECT_NE(test::problem_of([&] { convert(); }).fix.find("--split"), std::string::npos);
}

TEST_F(VocDir, AnEncodingThatIsNotReadIsAnError) {
  const auto declared = [](const std::string& encoding) {
    return voc(kBox, "a.png", "<?xml version=\"1.0\" encoding=\"" + encoding + "\"?>");
  };
  expect_refused(declared("GB2312"), "GB2312");
  expect_refused(declared("windows-1252"), "iconv");
  for (const char* encoding : {"utf-8", "UTF8", "ISO-8859-1", "us-ascii"}) {
    write("set/Annotations/a.xml", declared(encoding));
    EXPECT_EQ(read_voc_dir(path("set"), {}).splits.at("train").size(), 1u) << encoding;
  }
}

TEST_F(VocDir, AnObjectHasOneUprightBox) {
  expect_refused(voc(std::string(kBox) + kBox), "two <bndbox>");
  expect_refused(voc("<robndbox><cx>1</cx></robndbox>"), "rotated boxes are not supported");
  expect_refused(voc(""), "remove the object");
}

TEST_F(VocDir, ListsMayBeginWithAByteOrderMark) {
  write_image("set/JPEGImages/a.png");
  write("set/Annotations/a.xml", voc(kBox));
  write("set/ImageSets/Main/val.txt",
        "\xEF\xBB\xBF"
        "a\n");
  convert();
  EXPECT_EQ(written("val").size(), 1);
}

TEST_F(LabelMeDir, RectanglesCirclesMasksAndPolygonsAreObjects) {
  const WrittenSet result = convert(shape("rectangle", "[[120, 60], [20, 10]]") + "," +
                                    shape("polygon", "[[20, 10], [120, 10], [120, 60]]") + "," +
                                    shape("circle", "[[70, 35], [70, 60]]") + "," +
                                    shape("mask", "[[20, 10], [120, 60]]"));
  const std::vector<std::vector<int>> expected = {kBins, kBins, {225, 100, 475, 600}, kBins};
  EXPECT_EQ(bins(), expected);
  EXPECT_EQ(result.notes.at("circles replaced by their boxes"), 1);
  EXPECT_EQ(result.notes.at("masks replaced by their boxes"), 1);
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat");
}

TEST_F(LabelMeDir, OutlinesArePolygonsWhenAsked) {
  convert(shape("polygon", "[[20, 10], [120, 10], [120, 60]]"), {.polygons = true});
  EXPECT_EQ(written("train").samples()[0].objects[0].geometry.kind, GeometryKind::kPoly);
}

TEST_F(LabelMeDir, PointsAndLinesAreLeftOutAndCounted) {
  const WrittenSet result = convert(shape("point", "[[1, 1]]"));
  EXPECT_EQ(result.notes.at("left out: shapes of type \"point\""), 1);
  EXPECT_EQ(result.notes.at("empty scenes: all objects of the image were left out"), 1);
}

TEST_F(LabelMeDir, WhatIsNotLabelMesIsAnErrorThatNamesThePlace) {
  EXPECT_NE(test::problem_of([&] {
              convert(shape("rectangle", "[[1, 2]]"));
            }).where.find("shapes[0].points"),
            std::string::npos);
  EXPECT_NE(test::problem_of([&] { read_labelme_dir(path("nowhere"), {}); }).what.find("no such"),
            std::string::npos);
  EXPECT_EQ(test::problem_of([&] { read_labelme_dir(path("set/a.json"), {}); }).fix,
            "give its directory: " + path("set"));
  EXPECT_NE(test::problem_of([&] { read_labelme_dir(dir_.path(), {}); }).fix.find("one JSON"),
            std::string::npos);
  write("set/a.json", "{\"info\": {}}");
  EXPECT_NE(test::problem_of([&] { read_labelme_dir(path("set"), {}); }).where.find("a.json"),
            std::string::npos);
}

using AnyDir = test::ImportDir;

TEST_F(AnyDir, ADirectoryOfAnotherFormatIsRecognised) {
  write("coco/train/_annotations.coco.json", R"({"images": [], "annotations": []})");
  write("yolo/data.yaml", "train: images\nnames: [cat]\n");
  write("voc/a.xml", "<annotation/>");
  write("labelme/a.json", R"({"imagePath": "a.png", "shapes": []})");
  const auto fix_of = [&](const std::function<void()>& read) {
    return test::catch_user_error(read).problems().front().fix;
  };
  const auto expect_reader = [&](const std::string& fix, const std::string& format) {
    EXPECT_NE(fix.find("rematch data from-" + format + " " + path(format)), fix.npos) << fix;
  };
  expect_reader(fix_of([&] { read_yolo_set(path("coco"), {}); }), "coco");
  expect_reader(fix_of([&] { read_coco_files({path("yolo")}, {}); }), "yolo");
  expect_reader(fix_of([&] { read_labelme_dir(path("voc"), {}); }), "voc");
  expect_reader(fix_of([&] { read_voc_dir(path("labelme"), {}); }), "labelme");
}

}  // namespace rematch
