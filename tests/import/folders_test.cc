// Annotations of one file per image: Pascal VOC, labelImg, labelMe.
#include <filesystem>
#include <functional>

#include "import/import_dir.h"

namespace rematch {
namespace {

const std::vector<int> kFolderBins = {100, 100, 600, 600};
constexpr const char* kLabelMeBox =
    "<bndbox><xmin>21</xmin><ymin>11</ymin><xmax>120</xmax><ymax>60</ymax></bndbox>";

std::string voc(const std::string& object, const std::string& filename = "a.png",
                const std::string& declaration = "") {
  return declaration + "<annotation><filename>" + filename + "</filename><object><name>cat</name>" +
         object + "</object></annotation>";
}

class VocDir : public test::ImportDir {
 protected:
  WrittenSet convert(const ImportOptions& options = {}) {
    return convert_set(read_voc_dir({path("set")}, options), options);
  }
  /// Expects what is lost when an XML is read, an object or all, to be placed by a word.
  void expect_lost(const std::string& xml, const std::string& word) {
    write("set/Annotations/a.xml", xml);
    write("set/Annotations/good.xml", voc(kLabelMeBox));
    const ForeignSet set = read_voc_dir({path("set")}, {});
    std::vector<std::string> lost = set.ledger.places();
    for (const LostObject& object : set.splits.at("train")[0].lost)
      lost.push_back(object.place + " " + object.reason);
    ASSERT_EQ(lost.size(), 1u) << xml;
    EXPECT_NE(lost[0].find(word), std::string::npos) << lost[0];
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
    return convert_set(read_labelme_dir({path("set")}, options), options);
  }
};

}  // namespace

TEST_F(VocDir, LabelImgsFolderHoldsEachXmlNextToItsImage) {
  write_image("set/a.png");
  write("set/a.xml", voc(kLabelMeBox));
  convert();
  EXPECT_EQ(bins("train"), std::vector<std::vector<int>>{kFolderBins});
  convert({.split = "val"});
  EXPECT_EQ(bins("val"), std::vector<std::vector<int>>{kFolderBins});
}

TEST_F(VocDir, TheImageOfTheXmlsNameStandsInForOneThatIsNotThere) {
  write_image("set/renamed.PNG");
  write("set/renamed.xml", voc(kLabelMeBox, "IMG_0001.jpg"));
  convert();
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kFolderBins});
}

TEST_F(VocDir, FoldersOfSplitsAreSplits) {
  for (const std::string split : {"train", "valid"}) {
    write_image("set/" + split + "/a.png");
    write("set/" + split + "/a.xml", voc(kLabelMeBox));
  }
  convert();
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(written("val").size(), 1);
  write_image("set/val/deeper/b.png");
  write("set/val/deeper/b.xml", voc(kLabelMeBox, "b.png"));
  convert();
  EXPECT_EQ(written("val").size(), 2) << "val and valid are one split";
}

TEST_F(VocDir, AnEncodingThatIsNotReadIsAnError) {
  const auto declared = [](const std::string& encoding) {
    return voc(kLabelMeBox, "a.png", "<?xml version=\"1.0\" encoding=\"" + encoding + "\"?>");
  };
  expect_lost("<annotation><object><name>caf\xe9</name>" + std::string(kLabelMeBox) +
                  "</object></annotation>",
              "the text of <name>");
  for (const char* encoding : {"utf-8", "UTF8", "ISO-8859-1", "us-ascii", "GB2312"}) {
    write("set/Annotations/a.xml", declared(encoding));
    EXPECT_TRUE(read_voc_dir({path("set")}, {}).splits.at("train")[0].lost.empty()) << encoding;
  }
}

TEST_F(VocDir, AnObjectHasOneBoxOfNumbers) {
  expect_lost(voc(std::string(kLabelMeBox) + kLabelMeBox), "two <bndbox>");
  expect_lost(voc(""), "no <bndbox>");
  const std::string rest = "<ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>";
  for (const char* corner :
       {"<xmin>nan</xmin>", "<xmin>abc</xmin>", "<xmin>3 4</xmin>", "<xmin>inf</xmin>", ""})
    expect_lost(voc(std::string("<bndbox>") + corner + rest), "<xmin>");
}

TEST_F(VocDir, WhatIsTwiceOrInPiecesIsNeverHalfRead) {
  const std::string rest = "<ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>",
                    one = "<annotation><object><name>cat</name>" + std::string(kLabelMeBox) +
                          "</object></annotation>";
  expect_lost(one + one, "two root elements");
  std::filesystem::remove(path("set/Annotations/good.xml"));
  EXPECT_NE(test::problem_of([&] { read_voc_dir({path("set")}, {}); }).fix.find("its own file"),
            std::string::npos);
  expect_lost(voc("<name>dog</name>" + std::string(kLabelMeBox)), "two <name>");
  expect_lost(voc("<bndbox><xmin>1</xmin><xmin>2</xmin>" + rest), "two <xmin>");
  expect_lost(voc("<bndbox><xmin>2<!-- -->1</xmin>" + rest), "in pieces");
  expect_lost("<!DOCTYPE annotation [<!ENTITY c \"cat\">]><annotation><object><name>&c;</name>" +
                  std::string(kLabelMeBox) + "</object></annotation>",
              "entity");
  expect_lost("<annotation><object><name>&foo;</name>" + std::string(kLabelMeBox) +
                  "</object></annotation>",
              "entity");
}

TEST_F(VocDir, AnEscapedTextIsReadAsWritten) {
  write_image("set/a.png");
  for (const auto& [written, name] :
       std::vector<std::pair<const char*, const char*>>{{"&amp;c;", "&c;"},
                                                        {"<![CDATA[a & c]]>", "a & c"},
                                                        {"R &amp; D", "R & D"},
                                                        {"caf&#233; &lt;1&gt;", "café <1>"},
                                                        {"AT&T", "AT&T"}}) {
    write("set/a.xml", "<annotation><filename>a.png</filename><object><name>" +
                           std::string(written) + "</name>" + kLabelMeBox +
                           "</object></annotation>");
    convert();
    EXPECT_EQ(this->written("train").samples()[0].objects[0].desc, name);
  }
}

TEST_F(VocDir, AnAnnotationThatNamesAnotherPhotoIsLeftOut) {
  for (const char* name : {"1", "2", "3"})
    write_image("set/JPEGImages/" + std::string(name) + ".png");
  write("set/Annotations/1.xml", voc(kLabelMeBox, "2.png"));
  write("set/Annotations/3.xml", voc(kLabelMeBox, "3.png"));
  EXPECT_EQ(test::records_lost(convert(), reason::kOtherImage), 1);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(VocDir, ANameWithoutItsEndingMayBeThatOfAnotherPhoto) {
  for (const char* name : {"1", "2"}) write_image("set/photos/" + std::string(name) + ".png");
  write("set/ann/1.xml", voc(kLabelMeBox, "2"));
  write("set/ann/2.xml", voc(kLabelMeBox, "2"));
  EXPECT_EQ(test::records_lost(convert(), reason::kOtherImage), 1);
  EXPECT_TRUE(written("train").samples()[0].image_paths[0].ends_with("2.png"));
}

TEST_F(VocDir, RotatedBoxesAreLostByName) {
  expect_lost(voc("<robndbox><cx>70</cx><cy>35</cy><w>50</w><h>100</h><angle>1.57</angle>"
                  "</robndbox>"),
              "rotated");
  expect_lost(voc(std::string("<attributes><attribute><name>rotation</name><value>90.0</value>"
                              "</attribute></attributes>") +
                  kLabelMeBox),
              "rotated");
}

TEST_F(VocDir, ABoxThatItsPolygonContradictsIsLost) {
  const auto with_polygon = [](const std::string& x2) {
    return voc(
        "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>"
        "<polygon><x1>1</x1><y1>1</y1><x2>" +
        x2 + "</x2><y2>1</y2><x3>2</x3><y3>20</y3></polygon>");
  };
  expect_lost(with_polygon("90"), "object 1");
  write("set/Annotations/a.xml", with_polygon("21"));
  EXPECT_TRUE(read_voc_dir({path("set")}, {}).splits.at("train")[0].lost.empty());
}

TEST_F(VocDir, ABoxThatIsNotWhereItBelongsIsNoEmptyScene) {
  const std::string box =
      "<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox>";
  expect_lost("<annotation><objects><object>" + box + "</object></objects></annotation>",
              "out of place");
  expect_lost("<annotation><object><name>cat</name>" + box + "</object><item>" + box +
                  "</item></annotation>",
              "out of place");
  const std::string object = "<object><name>cat</name>" + box + "</object>";
  expect_lost("<annotation><annotation>" + object + "</annotation></annotation>", "out of place");
  expect_lost("<annotation><object><name>cat</name>" + box + object + "</object></annotation>",
              "<object> is out of place");
  expect_lost("<!DOCTYPE annotation [<!ENTITY o \"<object/>\">]><annotation>&o;</annotation>",
              "entity");
  expect_lost("<annotation>cat 1 1 9 9</annotation>", "text is out of place");
  expect_lost("<annotation/>", "is empty");
}

TEST_F(VocDir, ACornerOfZeroShowsThatPixelsAreCountedFromZero) {
  write_image("set/a.png");
  write_image("set/b.png");
  write("set/a.xml", voc("<bndbox><xmin>20</xmin><ymin>10</ymin><xmax>120</xmax><ymax>60</ymax>"
                         "</bndbox>"));
  convert();
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{95, 90, 600, 600}}));
  write("set/b.xml", voc("<bndbox><xmin>0</xmin><ymin>0</ymin><xmax>200</xmax><ymax>60</ymax>"
                         "</bndbox>",
                         "b.png"));
  EXPECT_EQ(test::noted(convert(), "objects clipped to the image"), 0);
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kFolderBins});
}

TEST_F(VocDir, FoldersHaveAnyLetterCaseAndUsualNames) {
  for (const char* folder : {"annotations", "Annots", "xmls"}) {
    std::filesystem::remove_all(path("set"));
    write_image("set/Images/a.png");
    write("set/" + std::string(folder) + "/a.xml", voc(kLabelMeBox));
    convert();
    EXPECT_EQ(bins(), std::vector<std::vector<int>>{kFolderBins}) << folder;
  }
}

TEST_F(VocDir, ADataSetMayLieOneFolderDown) {
  write_image("set/raccoon-master/images/a.png");
  write("set/raccoon-master/annotations/a.xml", voc(kLabelMeBox));
  convert();
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kFolderBins});
}

TEST_F(VocDir, OneBadXmlLeavesOutOneRecord) {
  write_image("set/a.png");
  write_image("set/b.png");
  write("set/a.xml", voc(kLabelMeBox));
  write("set/b.xml", "<annotation><object>");
  EXPECT_EQ(test::records_lost(convert(), reason::kDamagedRecord), 1);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(VocDir, ListsMayBeginWithAByteOrderMark) {
  write_image("set/JPEGImages/a.png");
  write("set/Annotations/a.xml", voc(kLabelMeBox));
  write("set/ImageSets/Main/val.txt",
        "\xEF\xBB\xBF"
        "a\n");
  convert();
  EXPECT_EQ(written("val").size(), 1);
}

TEST_F(VocDir, CountsWhatIsNotRead) {
  for (const char* name : {"a", "b", "c"}) write_image(fmt::format("set/JPEGImages/{}.png", name));
  write("set/Annotations/a.xml", voc("<part><name>ear</name></part>" + std::string(kLabelMeBox)));
  write("set/Annotations/b.xml", voc(kLabelMeBox));
  write("set/ImageSets/Main/train.txt", "a\n");
  const WrittenSet result = convert();
  EXPECT_EQ(test::noted(result, "parts of objects (<part>), left out"), 1);
  EXPECT_EQ(test::noted(result, "annotations that no list of ImageSets names, left out"), 1);
  EXPECT_EQ(test::noted(result, "images in the same folders that no annotation names, left out"),
            2);
}

TEST_F(VocDir, ANameThatCannotBeUsedIsNoMissingBox) {
  write_image("set/a.png");
  write_image("set/b.png");
  write("set/a.xml", voc(kLabelMeBox));
  write("set/b.xml", voc("<name>dog</name>" + std::string(kLabelMeBox), "b.png"));
  EXPECT_EQ(test::records_lost(convert(), reason::kBadName), 1);
}

TEST_F(LabelMeDir, RectanglesMasksAndPolygonsAreObjects) {
  const WrittenSet result = convert(shape("rectangle", "[[120, 60], [20, 10]]") + "," +
                                    shape("polygon", "[[20, 10], [120, 10], [120, 60]]") + "," +
                                    shape("mask", "[[20, 10], [120, 60]]"));
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{kFolderBins, kFolderBins, kFolderBins}));
  EXPECT_EQ(test::noted(result, "masks replaced by their boxes"), 1);
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat");
}

TEST_F(LabelMeDir, OutlinesArePolygonsWhenAsked) {
  convert(shape("polygon", "[[20, 10], [120, 10], [120, 60]]"), {.polygons = true});
  EXPECT_EQ(written("train").samples()[0].objects[0].geometry.kind, GeometryKind::kPoly);
}

TEST_F(LabelMeDir, AShapeThatIsNoObjectLeavesOutItsRecord) {
  write_image("set/b.png");
  write("set/b.json", R"({"imagePath": "b.png", "shapes": []})");
  for (const auto& [shape_text, reason] : std::vector<std::pair<std::string, std::string>>{
           {shape("point", "[[1, 1]]"), "a shape of type \"point\""},
           {shape("circle", "[[70, 35], [70, 60]]"), "a shape of type \"circle\""},
           {shape("linestrip", "[[1, 1], [9, 9]]"), "a shape of type \"linestrip\""},
           {shape("rectangle", "[[1, 2]]"), reason::kNoBox}}) {
    const WrittenSet result =
        convert(shape("rectangle", "[[120, 60], [20, 10]]") + "," + shape_text);
    EXPECT_EQ(test::records_lost(result, reason), 1);
    EXPECT_EQ(written("train").size(), 1);
  }
}

TEST_F(LabelMeDir, WhatIsNotLabelMesIsAnErrorThatNamesThePlace) {
  EXPECT_NE(test::problem_of([&] { read_labelme_dir({path("nowhere")}, {}); }).what.find("no file"),
            std::string::npos);
  EXPECT_EQ(test::problem_of([&] { read_labelme_dir({path("set/a.json")}, {}); }).what,
            "no file or directory has this name");
  EXPECT_NE(test::problem_of([&] { read_labelme_dir({dir_.path()}, {}); }).what.find(".json files"),
            std::string::npos);
  write("set/a.json", "{\"info\": {}}");
  EXPECT_NE(test::problem_of([&] { read_labelme_dir({path("set")}, {}); }).where.find("a.json"),
            std::string::npos);
}

TEST_F(LabelMeDir, APhotoThatIsOnlyInsideItsJsonIsNamed) {
  const auto text = [](const std::string& name) {
    return R"({"imagePath": ")" + name + R"(", "imageData": "iVBORw0KGgo=", "shapes": [)" +
           shape("rectangle", "[[20, 10], [120, 60]]") + "]}";
  };
  write("set/a.json", text("a.png"));
  write("set/b.json", text("b.png"));
  EXPECT_EQ(
      test::records_lost(convert_set(read_labelme_dir({path("set")}, {})), reason::kImageInside),
      1);
  EXPECT_EQ(written("train").size(), 1) << "a.png is there";
}

using AnyDir = test::ImportDir;

TEST_F(AnyDir, ADirectoryOfAnotherFormIsRefusedWithAllForms) {
  write("coco/train/_annotations.coco.json", R"({"images": [], "annotations": []})");
  write("yolo/data.yaml", "train: images\nnames: [cat]\n");
  write("voc/a.xml", "<annotation/>");
  write("labelme/a.json", R"({"imagePath": "a.png", "shapes": []})");
  for (const std::function<void()>& read : std::vector<std::function<void()>>{
           [&] { read_yolo_set({path("coco")}, {}); }, [&] { read_coco_files({path("yolo")}, {}); },
           [&] { read_labelme_dir({path("voc")}, {}); },
           [&] { read_voc_dir({path("labelme")}, {}); }})
    EXPECT_NE(test::problem_of(read).fix.find("from-yolo"), std::string::npos);
}

TEST_F(LabelMeDir, ARegionToIgnoreIsLeftOut) {
  const std::string ignored =
      R"({"label": "__ignore__", "shape_type": "rectangle", "points": [[1, 1], [99, 99]]})";
  const WrittenSet result = convert(shape("rectangle", "[[120, 60], [20, 10]]") + ", " + ignored);
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kFolderBins});
  EXPECT_EQ(test::noted(result, "regions marked to be ignored, left out"), 1);
  EXPECT_NE(
      test::catch_user_error([&] { convert(ignored); }).problems().front().what.find("crowds"),
      std::string::npos)
      << "no empty scene";
}

TEST_F(LabelMeDir, APartOfAnObjectIsNoObject) {
  const auto part = [](const std::string& points, const std::string& group) {
    return R"({"label": "cat", "shape_type": "rectangle", "group_id": )" + group +
           R"(, "points": )" + points + "}";
  };
  convert(part("[[20, 10], [120, 60]]", "1") + ", " + part("[[0, 0], [20, 10]]", "2") + ", " +
          part("[[0, 0], [20, 10]]", "null") + ", " + part("[[0, 0], [20, 10]]", "null"));
  EXPECT_EQ(bins().size(), 4u);
  const Problem problem = test::problem_of([&] {
    convert(part("[[20, 10], [60, 30]]", "1") + ", " + part("[[80, 40], [120, 60]]", "1"));
  });
  EXPECT_NE(problem.what.find("group_id"), std::string::npos) << problem.what;
}

}  // namespace rematch
