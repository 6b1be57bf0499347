// The sixty pictures of dev/goldens/vision_suite.py and the real vLLM. That their pixels, grids and
// numbers of tokens are AutoProcessor's, tests/vision/image_oracle_test.cc shows.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vllm/live_vllm.h"

namespace rematch {

// A prompt whose number of image tokens is not vLLM's own ends VllmEngine::generate with an error;
// other pixels end in other answers.
TEST(VllmPictures, AwkwardOnesGiveTheTokensAndAnswersOfTheOtherBackendsInBothFamilies) {
  REMATCH_NEEDS_VLLM();
  const test::TempDir directory;
  test::make_goldens("vision_suite.py --pictures " + directory.path());
  std::set<std::string> files;
  for (const std::string& line : split(read_file(directory.file("manifest.jsonl")), '\n')) {
    if (line.empty()) continue;
    const Json row = parse_json(line, "manifest.jsonl");
    if (!row.contains("refused")) files.insert(directory.file(row["file"]));
  }
  ASSERT_GT(files.size(), 50u);
  for (const std::string& model : {test::random_model(), test::windows_model()}) {
    const test::Questions asked = test::questions_about(model, {files.begin(), files.end()});
    const auto expected = asked.answers(*make_engine("hf", asked.parts, asked.options(12)));
    EXPECT_GT(std::set(expected.begin(), expected.end()).size(), files.size() / 2)
        << "pictures matter";
    for (const char* backend : {"native", "vllm"}) {
      const test::Differences differences = test::compare(
          asked, expected, asked.answers(*make_engine(backend, asked.parts, asked.options(12))));
      EXPECT_EQ(differences.unexplained, 0) << backend << ", " << model;
      EXPECT_LE(differences.near_ties, 2) << backend << ", " << model;
    }
  }
}

}  // namespace rematch
