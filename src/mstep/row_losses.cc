#include "mstep/row_losses.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rematch {
namespace {

ScaledLoss scaled_loss(const RowLoss& row, const LossScale& scale) {
  ScaledLoss loss{.details = row.details};
  for (const auto& [kind, sum] : row.by_kind) loss.scaled[kind] = sum.sum * scale_of(scale, kind);
  return loss;
}

// JSON carries every finite double as it is; a row whose loss is not finite has ended the step.
std::string text_of(const std::vector<ScaledLoss>& rows) {
  Json list = Json::array();
  for (const ScaledLoss& row : rows) {
    Json details = Json::object();
    for (const auto& [name, sum] : row.details) details[name] = {sum.sum, sum.count};
    list.push_back({{"scaled", row.scaled}, {"details", std::move(details)}});
  }
  return list.dump();
}

std::vector<ScaledLoss> read(const std::string& text) {
  std::vector<ScaledLoss> rows;
  for (const Json& item : Json::parse(text)) {
    ScaledLoss& row = rows.emplace_back();
    row.scaled = item["scaled"].get<std::map<std::string, double>>();
    for (const auto& entry : item["details"].items())
      row.details.add(entry.key(), {entry.value()[0], entry.value()[1]});
  }
  return rows;
}

}  // namespace

std::vector<ScaledLoss> gather_losses(Group& group, const std::vector<RowLoss>& rows,
                                      const std::vector<LossScale>& scales) {
  std::vector<ScaledLoss> mine;
  for (size_t i = 0; i < rows.size(); ++i) mine.push_back(scaled_loss(rows[i], scales[i]));
  if (group.is_alone()) return mine;
  const std::vector<std::string> texts = group.all_gather(text_of(mine));
  if (group.rank() != 0) return {};
  std::vector<std::vector<ScaledLoss>> by_rank;
  for (const std::string& text : texts) by_rank.push_back(read(text));
  std::vector<ScaledLoss> all;
  for (size_t turn = 0;; ++turn) {
    const size_t before = all.size();
    for (const std::vector<ScaledLoss>& list : by_rank) {
      if (turn < list.size()) all.push_back(list[turn]);
    }
    if (all.size() == before) return all;
  }
}

}  // namespace rematch
