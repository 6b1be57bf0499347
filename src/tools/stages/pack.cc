// `rematch stage pack`: lengths of waiting segments in, the segments of the next row out.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "learn/pack/carry.h"
#include "learn/pack/select.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

int require_positive(const std::string& key, int value) {
  if (value >= 1) return value;
  throw config_error({.error = fmt::format("{} must be at least 1", key),
                      .where = fmt::format("input.{}", key),
                      .what = fmt::format("{}", value),
                      .fix = fmt::format("set {} to 1 or more", key)});
}

class PackStage : public Stage {
 public:
  Json run(const Json& input) override {
    JsonFields fields(input, input_origin(), "input");
    const std::vector<int> encoded_lens = fields.integers("encoded_lens");
    fields.at("packing_length");
    PackingLimits limits{.packing_length = require_positive(
                             "packing_length", fields.integer_or("packing_length", 0))};
    const PackingSelector selector =
        packing_selector(fields.text_or("packing_selector", "binpacking"));
    if (fields.has("packing_buffer"))
      limits.packing_buffer =
          require_positive("packing_buffer", fields.integer_or("packing_buffer", 0));
    fields.finish();
    check_lengths(encoded_lens);
    check_insertion(encoded_lens, length_name, 0, limits);

    const Selection selection = select_segments(selector, encoded_lens, limits.packing_length);
    Json answer;
    answer["selected"] = selection.indices;
    answer["total"] = selection.total;
    answer["fill"] = static_cast<double>(selection.total) / limits.packing_length;
    return answer;
  }

 private:
  static std::string length_name(size_t i) { return fmt::format("encoded_lens[{}]", i); }

  static void check_lengths(const std::vector<int>& encoded_lens) {
    for (size_t i = 0; i < encoded_lens.size(); ++i) {
      if (encoded_lens[i] >= 1) continue;
      throw data_error({.error = "a segment must have at least one token",
                        .where = length_name(i),
                        .what = fmt::format("encoded_len {}", encoded_lens[i]),
                        .fix = "pass lengths of 1 or more"});
    }
  }
};

}  // namespace

std::unique_ptr<Stage> make_pack_stage(const StageOptions&) {
  return std::make_unique<PackStage>();
}

}  // namespace rematch
