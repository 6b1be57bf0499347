#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "import/import_dir.h"
#include "learn/data/stock_answer.h"

namespace rematch {

inline constexpr const char* kAnswer = R"([{"bbox_2d": [100, 200, 500, 1000], "label": "cat"}])";

/// A directory with images of 200 x 100 pixels.
class ChatTest : public testing::Test {
 protected:
  ChatTest() {
    const std::string png = encode_png(Canvas(200, 100, kWhite).image());
    for (const char* name : {"a.png", "b.png", "photos/c.png"}) directory_.write(name, png);
  }

  // A conversation in the dialect of `messages`.
  static Json messages(const std::string& question, const std::string& answer,
                       const std::string& image = "a.png") {
    return {
        {"messages",
         {{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}},
        {"images", {image}}};
  }
  // The same in that of `conversations`.
  static Json conversations(const std::string& question, const std::string& answer) {
    return {{"image", "a.png"},
            {"conversations",
             {{{"from", "human"}, {"value", question}}, {{"from", "gpt"}, {"value", answer}}}}};
  }

  ForeignSet read(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    std::string lines;
    for (const Json& record : records) lines += record.dump() + "\n";
    return read_chat_files({directory_.write("train.jsonl", lines)}, options);
  }
  WrittenSet convert(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    return write_records(read(records, options), directory_.file("out"));
  }
  std::vector<Sample> written() const {
    return Dataset::load(directory_.file("out/train.jsonl"), {}).samples();
  }
  std::vector<Sample> samples(const std::vector<Json>& records,
                              const ImportOptions& options = {}) const {
    convert(records, options);
    return written();
  }
  /// Bins of the objects of one answer.
  std::vector<std::vector<int>> bins(const std::string& answer,
                                     const ImportOptions& options = {}) const {
    std::vector<std::vector<int>> all;
    const std::vector<Sample> read = samples({messages("<image>x", answer)}, options);
    for (const SceneObject& object : read[0].objects) all.push_back(object.geometry.bins);
    return all;
  }
  /// The reason why one answer is left out.
  std::string reason_of(const std::string& answer, const ImportOptions& options = {}) const {
    const WrittenSet written =
        convert({messages("<image>x", kAnswer), messages("<image>x", answer)}, options);
    const Losses& losses = written.ledger.records();
    return losses.size() == 1 ? losses.begin()->first : std::to_string(losses.size());
  }
  std::string refused(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    const UserError error = test::catch_user_error([&] { convert(records, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }

  test::TempDir directory_;
};

inline const std::vector<std::vector<int>> kAnswerBox = {{100, 200, 500, 999}};

}  // namespace rematch
