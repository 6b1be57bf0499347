#include "learn/data/order_score.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/flow/bins.h"
#include "base/json_fields.h"

namespace rematch {
namespace {

constexpr size_t kN = kNumOrderFeatures, kSameName = kN - 1;
constexpr size_t kFarthest = 24;         ///< an entry is compared with so many later ones
constexpr double kLeastAgreement = 0.9;  ///< truth in a looser order lost to sorted (docs/order.md)
constexpr double kSimpler = 0.01;        ///< share of pairs that a named order may lack
constexpr double kL2 = 1e-3;
constexpr int kNewtonSteps = 30;

using Features = std::array<double, kN>;

struct NamedOrder {
  std::string name;
  Features weights;
};

// Weights far apart: the first that is not 0 decides.
const NamedOrder kPlainOrders[] = {
    {"from the top, as `sorted`", {-1, -1e3}},
    {"from left to right", {-1e3, -1}},
    {"rows from the top", {-1e3, -1, 0, 0, 0, 0, 0, 0, 0, -1e6}},
    {"largest first", {0, 0, 0, 0, 1}},
};

/// The plain orders, then each within objects of one name.
std::vector<NamedOrder> named_orders() {
  std::vector<NamedOrder> orders(std::begin(kPlainOrders), std::end(kPlainOrders));
  for (NamedOrder order : kPlainOrders) {
    order.name = "by name, then " + order.name;
    order.weights[kSameName] = 1e9;
    orders.push_back(std::move(order));
  }
  return orders;
}

Features box_features(const Geometry& geometry) {
  const Aabb box = bounding_box(geometry);
  const double left = box.min_x, top = box.min_y, right = box.max_x, bottom = box.max_y;
  const double longer = std::max(right - left, bottom - top),
               shorter = std::min(right - left, bottom - top);
  return {left,
          top,
          right,
          bottom,
          longer * shorter / kNumBins,
          longer,
          shorter,
          std::abs(left + right - kNumBins) / 2,
          std::abs(top + bottom - kNumBins) / 2};
}

/// Numbers the rows: a row holds the middles up to half a mean height below its first.
void add_rows(std::vector<Features>& boxes) {
  const auto middle = [](const Features& box) { return (box[1] + box[3]) / 2; };
  double height = 0;
  for (const Features& box : boxes) height += box[3] - box[1];
  height /= boxes.size();
  std::vector<Features*> down;
  for (Features& box : boxes) down.push_back(&box);
  std::ranges::stable_sort(down, {}, [&](const auto* box) { return middle(*box); });
  double row = 0, first = down.empty() ? 0 : middle(*down.front());
  for (Features* box : down) {
    if (middle(*box) - first > height / 2) {
      row += 1;
      first = middle(*box);
    }
    (*box)[9] = row;
  }
}

/// Without the name of the entry before.
std::vector<Features> features_of(const Objects& objects) {
  std::vector<Features> features;
  for (const SceneObject& object : objects) features.push_back(box_features(object.geometry));
  add_rows(features);
  return features;
}

double dot(const Features& a, const Features& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Appends, for each entry and each later one, the features of the first minus those of the other.
void add_pairs(const Objects& answer, std::vector<Features>& pairs) {
  std::vector<Features> features = features_of(answer);
  for (size_t i = 0; i + 1 < answer.size(); ++i) {
    for (size_t j = i; j < answer.size(); ++j)
      features[j][kSameName] = i > 0 && answer[j].desc == answer[i - 1].desc;
    for (size_t j = i + 1; j < std::min(answer.size(), i + 1 + kFarthest); ++j) {
      Features& pair = pairs.emplace_back(features[i]);
      for (size_t k = 0; k < kN; ++k) pair[k] -= features[j][k];
    }
  }
}

/// Share of the pairs whose first entry has the higher score; ties count half.
double agreement_of(const Features& weights, const std::vector<Features>& pairs) {
  double agreeing = 0;
  for (const Features& pair : pairs) {
    const double score = dot(weights, pair);
    agreeing += score > 0 ? 1 : score < 0 ? 0 : 0.5;
  }
  return pairs.empty() ? 0 : agreeing / pairs.size();
}

/// x of A x = b by Gauss elimination; A is positive definite.
Features solve(std::array<Features, kN> a, Features b) {
  for (size_t i = 0; i < kN; ++i) {
    for (size_t row = i + 1; row < kN; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (size_t k = i; k < kN; ++k) a[row][k] -= factor * a[i][k];
      b[row] -= factor * b[i];
    }
  }
  for (size_t i = kN; i-- > 0;) {
    for (size_t k = i + 1; k < kN; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// Logistic regression without intercept by Newton's method, on features scaled by their RMS.
Features learn(const std::vector<Features>& pairs) {
  const double count = pairs.size();
  Features scale{}, weights{};
  for (const Features& pair : pairs) {
    for (size_t k = 0; k < kN; ++k) scale[k] += pair[k] * pair[k] / count;
  }
  for (double& value : scale) value = value > 0 ? 1 / std::sqrt(value) : 0;
  for (int step = 0; step < kNewtonSteps; ++step) {
    Features gradient{};
    std::array<Features, kN> curvature{};
    for (size_t i = 0; i < kN; ++i) {
      gradient[i] = kL2 * weights[i];
      curvature[i][i] = kL2;
    }
    for (const Features& pair : pairs) {
      Features x = pair;
      for (size_t k = 0; k < kN; ++k) x[k] *= scale[k];
      const double chance = 1 / (1 + std::exp(dot(x, weights)));  // of the other order
      for (size_t i = 0; i < kN; ++i) {
        gradient[i] -= chance * x[i] / count;
        for (size_t k = 0; k < kN; ++k)
          curvature[i][k] += chance * (1 - chance) * x[i] * x[k] / count;
      }
    }
    const Features change = solve(curvature, gradient);
    for (size_t k = 0; k < kN; ++k) weights[k] -= change[k];
  }
  for (size_t k = 0; k < kN; ++k) weights[k] *= scale[k];
  return weights;
}

bool comes_before(const Objects& a, const Objects& b) {
  const auto key = [](const SceneObject& one) { return std::tie(one.desc, one.geometry.bins); };
  return std::ranges::lexicographical_compare(a, b, {}, key, key);
}

}  // namespace

OrderScore fit_order(std::vector<Objects> answers) {
  std::ranges::sort(answers, comes_before);  // sums of floats depend on it
  std::vector<Features> pairs;
  for (const Objects& answer : answers) add_pairs(answer, pairs);
  NamedOrder nearest = kPlainOrders[0];
  OrderScore order{.weights = nearest.weights,
                   .name = nearest.name,
                   .agreement = agreement_of(nearest.weights, pairs),
                   .num_pairs = std::ssize(pairs)};
  order.sorted_agreement = order.agreement;
  for (const NamedOrder& named : named_orders()) {
    const double agreement = agreement_of(named.weights, pairs);
    if (agreement <= order.agreement) continue;
    nearest = named;
    order.agreement = agreement;
  }
  if (order.has_few_pairs()) return order;
  const Features learned = learn(pairs);
  const double agreement = agreement_of(learned, pairs);
  const bool is_named = order.agreement + kSimpler >= agreement;
  order.agreement = is_named ? order.agreement : agreement;
  order.is_found = order.agreement >= kLeastAgreement;
  if (!order.is_found) return order;
  order.weights = is_named ? nearest.weights : learned;
  order.name = (is_named ? "" : "learned, nearest to ") + nearest.name;
  return order;
}

Objects sort_by(const OrderScore& order, Objects objects) {
  std::vector<Features> features = features_of(objects);
  std::vector<std::pair<double, size_t>> rest;  // score and place, best first
  for (size_t i = 0; i < objects.size(); ++i) rest.emplace_back(dot(order.weights, features[i]), i);
  std::ranges::stable_sort(rest, {}, [&](const auto& one) {
    const Features& box = features[one.second];
    return std::tuple(-one.first, box[1], box[0]);
  });
  Objects sorted;
  while (!rest.empty()) {
    const auto score = [&](const auto& one) {
      const bool is_same = !sorted.empty() && objects[one.second].desc == sorted.back().desc;
      return one.first + (is_same ? order.weights[kSameName] : 0);
    };
    const auto best =
        order.weights[kSameName] == 0 ? rest.begin() : std::ranges::max_element(rest, {}, score);
    sorted.push_back(objects[best->second]);
    rest.erase(best);
  }
  return sorted;
}

std::string order_text(const OrderScore& order) {
  const std::string pairs = fmt::format("{:.2f} of {} pairs", order.agreement, order.num_pairs);
  if (!order.is_found)
    return fmt::format("none found in the answers ({}{}); the truth is `sorted`",
                       order.has_few_pairs() ? "too few: " : "at most ", pairs);
  return fmt::format("{}, {} (`sorted`: {:.2f})", order.name, pairs, order.sorted_agreement);
}

void write_order(const std::string& directory, const OrderScore& order) {
  const Json json{{"name", order.name},           {"weights", order.weights},
                  {"agreement", order.agreement}, {"sorted_agreement", order.sorted_agreement},
                  {"pairs", order.num_pairs},     {"found", order.is_found}};
  write_file_atomic(join_path(directory, kOrderFile), python_json(json, 2) + "\n");
}

std::optional<OrderScore> read_order(const std::string& directory) {
  const std::string path = join_path(directory, kOrderFile);
  if (!path_exists(path)) return std::nullopt;
  const JsonOrigin origin{.path = path,
                          .error = "the order of this checkpoint's answers cannot be read",
                          .fix = "restore the file, or remove it to have it learned again"};
  const Json json = parse_document(read_file(path), origin);
  JsonFields fields(json, origin);
  OrderScore order{.name = fields.text("name"),
                   .agreement = fields.number("agreement"),
                   .sorted_agreement = fields.number("sorted_agreement"),
                   .num_pairs = fields.integer("pairs", 0),
                   .is_found = fields.boolean("found")};
  const Json& weights = fields.list("weights", kN);
  for (size_t k = 0; k < kN; ++k) {
    if (weights.size() != kN || !weights[k].is_number())
      fields.fail("weights", fmt::format("not a list of {} numbers", kN));
    order.weights[k] = weights[k].get<double>();
  }
  fields.finish();
  return order;
}

}  // namespace rematch
