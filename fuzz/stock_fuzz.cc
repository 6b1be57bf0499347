// Foreign bytes as a stock answer and as a conversation: what is read is a legal scene that
// survives being written again; all else is a data error.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/flow/bins.h"
#include "base/json.h"
#include "base/text.h"
#include "learn/data/stock_answer.h"
#include "tools/import/chat_steps.h"

namespace {

template <typename Work>
void expect_data_error(const Work& work) {
  try {
    work();
  } catch (const rematch::UserError& error) {
    REMATCH_CHECK(error.kind() == rematch::ErrorKind::kData, error.what());
  }
}

void check_answer(std::string_view text) {
  rematch::ForeignSet set;
  const rematch::ImportedAnswer answer = rematch::read_answer(text, {.where = "fuzz"}, set);
  REMATCH_CHECK(answer.is_list || (answer.image.objects.empty() && !answer.problem.empty()),
                "problem");
  std::vector<rematch::SceneObject> scene;
  for (const rematch::ForeignObject& object : answer.image.objects) {
    const std::string desc =
        rematch::is_valid_utf8(object.desc) ? rematch::python_strip(object.desc) : "";
    std::vector<int> bins;
    for (const double side : {object.x0, object.y0, object.x1, object.y1}) {
      if (side >= 0 && side <= 1000) bins.push_back(rematch::NumberScale{}.bin(side, 0));
    }
    if (desc.empty() || bins.size() != 4) continue;
    scene.push_back({desc, {rematch::GeometryKind::kBbox2d, bins}});
  }
  const std::string written = rematch::format_stock_answer(scene, {});
  const rematch::ImportedAnswer again = rematch::read_answer(written, {.where = "again"}, set);
  REMATCH_CHECK(
      again.is_list && again.image.lost.empty() && again.image.objects.size() == scene.size(),
      written);
}

void check_conversation(std::string_view text) {
  const rematch::Json record = rematch::parse_json(text, "fuzz");
  try {
    for (const rematch::ChatTurn& turn : rematch::read_chat(record).turns)
      REMATCH_CHECK(rematch::is_valid_utf8(turn.text), "text");
  } catch (const rematch::LeftOut&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_data_error([&] { check_answer(text); });
  expect_data_error([&] { check_conversation(text); });
  return 0;
}
