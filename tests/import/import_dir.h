#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "learn/data/dataset.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"
#include "tools/import/foreign.h"
#include "tools/import/reasons.h"

namespace rematch::test {

/// A data set of another program in a temporary directory, and the files converted from it.
class ImportDir : public testing::Test {
 protected:
  /// A white image of 200 x 100 pixels.
  std::string write_image(const std::string& name) const {
    return dir_.write(name, encode_png(Canvas(200, 100, kWhite).image()));
  }
  std::string write(const std::string& name, const std::string& text) const {
    return dir_.write(name, text);
  }
  std::string path(const std::string& name) const { return dir_.file(name); }
  std::string out() const { return dir_.file("out"); }
  Dataset written(const std::string& split) const {
    return Dataset::load(out() + "/" + split + ".jsonl", {});
  }
  /// Bins of the objects of a split's first record.
  std::vector<std::vector<int>> bins(const std::string& split = "train") const {
    std::vector<std::vector<int>> all;
    const Dataset dataset = written(split);
    for (const SceneObject& object : dataset.samples()[0].objects)
      all.push_back(object.geometry.bins);
    return all;
  }

  /// Converts a set with the options that read it.
  WrittenSet convert_set(ForeignSet set, const ImportOptions& options = {}) const {
    set.options = options;
    return write_records(std::move(set), out());
  }

  TempDir dir_;
};

/// Number of records left out for a reason.
inline int64_t records_lost(const WrittenSet& written, const std::string& reason) {
  const auto found = written.ledger.records().find(reason);
  return found == written.ledger.records().end() ? 0 : found->second.count;
}
inline int64_t objects_lost(const WrittenSet& written, const std::string& reason) {
  const auto found = written.ledger.objects().find(reason);
  return found == written.ledger.objects().end() ? 0 : found->second.count;
}
inline int64_t noted(const WrittenSet& written, const std::string& note) {
  const auto found = written.ledger.notes().find(note);
  return found == written.ledger.notes().end() ? 0 : found->second;
}

/// The one problem of an action that a user must fix.
inline Problem problem_of(const std::function<void()>& action) {
  return catch_user_error(action).problems().front();
}

/// COCO with one image of 200 x 100 pixels and a box of 20 … 120, 10 … 60.
inline std::string coco(const std::string& file_name, const std::string& annotations = "") {
  return R"({"images": [{"id": 1, "file_name": ")" + file_name +
         R"(", "width": 200, "height": 100}], "categories": [{"id": 7, "name": "cat"}],
         "annotations": [)" +
         (annotations.empty() ? R"({"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50]})"
                              : annotations) +
         "]}";
}

}  // namespace rematch::test
