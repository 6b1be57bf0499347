// Foreign bytes as a stock answer and as a conversation: what is read is a legal scene that
// survives being written again; all else is a data error.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "import/chat_record.h"
#include "import/stock_answer.h"

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
  const rematch::StockAnswer answer = rematch::read_stock_answer(text, {}, "fuzz");
  for (const rematch::SceneObject& object : answer.objects) {
    REMATCH_CHECK(object.geometry.bins.size() == 4, "box");
    for (const int bin : object.geometry.bins)
      REMATCH_CHECK(bin >= 0 && bin < rematch::kNumBins, "bin");
    REMATCH_CHECK(
        rematch::is_valid_utf8(object.desc) && !rematch::python_strip(object.desc).empty(), "desc");
  }
  const std::string written = rematch::format_stock_answer(answer.objects, {});
  const rematch::StockAnswer again = rematch::read_stock_answer(written, {}, "again");
  REMATCH_CHECK(again.objects == answer.objects && again.problems.empty(), written);
}

void check_conversation(std::string_view text) {
  const rematch::Json record = rematch::parse_json(text, "fuzz");
  if (!rematch::is_chat(record)) return;
  const rematch::JsonOrigin origin{.path = "fuzz", .error = "no conversation", .fix = "fix"};
  for (const rematch::ChatTurn& turn : rematch::read_chat(record, origin).turns)
    REMATCH_CHECK(rematch::is_valid_utf8(turn.text), "text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_data_error([&] { check_answer(text); });
  expect_data_error([&] { check_conversation(text); });
  return 0;
}
