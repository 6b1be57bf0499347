#include "resume/segment_store.h"

#include <ATen/ATen.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "estep/target/segment_checks.h"

namespace rematch {
namespace {

constexpr const char* kTokenIds = "token_ids";
constexpr const char* kIsLabel = "is_label";
/// Labels other than their token: pairs (index of the token in the store, label). Absent if none.
constexpr const char* kOtherLabels = "other_labels";
const std::string kSlots = "_slots";  ///< suffix of a kind
constexpr int64_t kSlotWidth = 3;     ///< position, target, source
/// Left, top, width, height of a crop, 1 if mirrored, brightness, contrast, saturation. Absent for
/// an unchanged picture.
constexpr const char* kChange = "change";
constexpr size_t kChangeNumbers = 8;
constexpr int64_t kMaxInt = std::numeric_limits<int>::max();

Json image_json(const ImageRef& image) {
  Json json = {{"path", bytes_json(image.path)}, {"grid_thw", image.grid_thw}};
  if (!image.change.is_any()) return json;
  const ImageChange& change = image.change;
  Json numbers = change.crop_px;
  numbers.push_back(change.is_flipped);
  for (const int64_t factor : change.color) numbers.push_back(factor);
  json[kChange] = std::move(numbers);
  return json;
}

Json describe(const Segment& segment, const std::set<std::string>& slot_kinds) {
  Json images = Json::array();
  for (const ImageRef& image : segment.images) images.push_back(image_json(image));
  Json description = {{"sample_id", segment.sample_id},    {"num_tokens", segment.encoded_len()},
                      {"prompt_len", segment.prompt_len},  {"prefix_len", segment.prefix_len},
                      {"append_len", segment.append_len},  {"images", std::move(images)},
                      {"where", bytes_json(segment.where)}};
  for (const std::string& kind : slot_kinds)
    description["num_" + kind + kSlots] = segment.slots_of(kind).size();
  return description;
}

/// The tensors of a store, read segment by segment.
class TensorReader {
 public:
  TensorReader(const NamedTensors& tensors, const JsonOrigin& origin) : origin_(origin) {
    token_ids_ = find(tensors, kTokenIds, at::kInt, {-1});
    is_label_ = find(tensors, kIsLabel, at::kBool, {-1});
    if (is_label_.size(0) != token_ids_.size(0)) {
      fail(kIsLabel,
           fmt::format("{} label marks for {} tokens", is_label_.size(0), token_ids_.size(0)));
    }
    for (const auto& [name, tensor] : tensors) {
      if (name == kTokenIds || name == kIsLabel) continue;
      if (name == kOtherLabels) {
        read_other_labels(find(tensors, name, at::kInt, {-1, 2}));
        continue;
      }
      if (!name.ends_with(kSlots) || name == kSlots)
        fail(name, "this tensor is not part of the segments");
      slots_[name.substr(0, name.size() - kSlots.size())] = {
          find(tensors, name, at::kInt, {-1, kSlotWidth}), 0};
    }
  }

  int64_t tokens_left() const { return token_ids_.size(0) - next_token_; }
  int64_t slots_left() const {
    int64_t left = 0;
    for (const auto& [kind, slots] : slots_) left += slots.left();
    return left;
  }

  /// Reads the next `num_tokens` tokens with their labels. @param num_tokens  ≤ tokens_left()
  void take_tokens(Segment& segment, int64_t num_tokens, int64_t vocab_size,
                   const std::string& place) {
    const int32_t* ids = token_ids_.const_data_ptr<int32_t>() + next_token_;
    const bool* marks = is_label_.const_data_ptr<bool>() + next_token_;
    for (int64_t i = 0; i < num_tokens; ++i) {
      if (ids[i] < 0 || ids[i] >= vocab_size)
        fail(place,
             fmt::format("token {} has id {}, the vocabulary has {}", i, ids[i], vocab_size));
      const auto other = other_labels_.find(next_token_ + i);
      if (other != other_labels_.end() && (other->second < 0 || other->second >= vocab_size))
        fail(place, fmt::format("token {} has label {}, the vocabulary has {}", i, other->second,
                                vocab_size));
      segment.labels.push_back(!marks[i]                      ? kIgnoreLabel
                               : other == other_labels_.end() ? ids[i]
                                                              : other->second);
    }
    segment.token_ids.assign(ids, ids + num_tokens);
    next_token_ += num_tokens;
  }

  /// Reads the next slots of every kind. @param fields  with the number of slots of each kind
  void take_slots(Segment& segment, JsonFields& fields, const std::string& place) {
    for (auto& [kind, slots] : slots_) {
      const int64_t num_slots = fields.integer("num_" + kind + kSlots, 0, slots.left());
      const int32_t* slot = slots.slots.const_data_ptr<int32_t>() + slots.next * kSlotWidth;
      for (int64_t i = 0; i < num_slots; ++i, slot += kSlotWidth) {
        if (slot[2] != 0 && slot[2] != 1)
          fail(place, fmt::format("{} slot {} has source {}, expected 0 or 1", kind, i, slot[2]));
        segment.slots[kind].push_back(
            {.position = slot[0],
             .target = slot[1],
             .source = slot[2] == 0 ? SlotSource::kPrefix : SlotSource::kAppend});
      }
      slots.next += num_slots;
    }
  }

 private:
  void read_other_labels(const at::Tensor& pairs) {
    const int32_t* pair = pairs.const_data_ptr<int32_t>();
    for (int64_t i = 0; i < pairs.size(0); ++i, pair += 2) other_labels_[pair[0]] = pair[1];
  }

  struct KindSlots {
    at::Tensor slots;
    int64_t next = 0;  ///< first slot that is not read yet
    int64_t left() const { return slots.size(0) - next; }
  };

  [[noreturn]] void fail(const std::string& place, const std::string& what) const {
    throw_json_error(origin_, place, what);
  }

  /// @param shape  -1 = any size
  at::Tensor find(const NamedTensors& tensors, const std::string& name, at::ScalarType dtype,
                  const std::vector<int64_t>& shape) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const auto& item) { return item.first == name; });
    if (found == tensors.end()) fail(name, "this tensor of the segments is missing");
    const at::Tensor& tensor = found->second;
    bool fits = tensor.scalar_type() == dtype && tensor.dim() == static_cast<int64_t>(shape.size());
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = shape[d] < 0 || tensor.size(static_cast<int64_t>(d)) == shape[d];
    if (!fits) {
      fail(name, fmt::format("this tensor of the segments has {} dimensions of {}", tensor.dim(),
                             at::toString(tensor.scalar_type())));
    }
    return tensor.contiguous();
  }

  const JsonOrigin& origin_;
  at::Tensor token_ids_, is_label_;
  std::map<int64_t, int32_t> other_labels_;  ///< index of a token in the store → label
  std::map<std::string, KindSlots> slots_;
  int64_t next_token_ = 0;
};

ImageChange read_change(JsonFields& fields, const JsonOrigin& origin) {
  ImageChange change;
  if (!fields.has(kChange)) return change;
  const Json& numbers = fields.list(kChange, kChangeNumbers);
  if (numbers.size() != kChangeNumbers)
    fields.fail(kChange, fmt::format("expected 8 numbers, found {}", numbers.size()));
  const auto number = [&](size_t i) {
    return json_integer(numbers[i], origin, fields.place_of(kChange), 0, kMaxInt);
  };
  for (size_t i = 0; i < 4; ++i) change.crop_px[i] = number(i);
  change.is_flipped = number(4);
  for (size_t i = 0; i < 3; ++i) change.color[i] = number(5 + i);
  return change;
}

ImageRef read_image(const Json& value, const JsonOrigin& origin, const std::string& place) {
  JsonFields fields(value, origin, place);
  ImageRef image;
  image.path = bytes_of(fields.at("path"), origin, fields.place_of("path"));
  if (image.path.empty()) fields.fail("path", "expected a path, found none");
  const Json& grid = fields.list("grid_thw", image.grid_thw.size());
  if (grid.size() != image.grid_thw.size())
    fields.fail("grid_thw", fmt::format("expected 3 numbers, found {}", grid.size()));
  for (size_t i = 0; i < grid.size(); ++i)
    image.grid_thw[i] = json_integer(grid[i], origin, fields.place_of("grid_thw"), 1, kMaxInt);
  image.change = read_change(fields, origin);
  fields.finish();
  return image;
}

Segment read_segment(const Json& value, TensorReader& tensors, int64_t vocab_size,
                     const JsonOrigin& origin, const std::string& place) {
  JsonFields fields(value, origin, place);
  Segment segment;
  segment.sample_id = fields.integer("sample_id", 0);
  const int64_t num_tokens =
      fields.integer("num_tokens", 1, std::min(kMaxInt, tensors.tokens_left()));
  segment.prompt_len = static_cast<int>(fields.integer("prompt_len", 0, num_tokens));
  segment.prefix_len =
      static_cast<int>(fields.integer("prefix_len", 0, num_tokens - segment.prompt_len));
  segment.append_len = static_cast<int>(
      fields.integer("append_len", 0, num_tokens - segment.prompt_len - segment.prefix_len));
  tensors.take_tokens(segment, num_tokens, vocab_size, place);
  tensors.take_slots(segment, fields, place);
  const Json& images = fields.list("images");
  for (size_t i = 0; i < images.size(); ++i) {
    segment.images.push_back(read_image(images[i], origin, fmt::format("{}.images[{}]", place, i)));
  }
  segment.where = bytes_of(fields.at("where"), origin, fields.place_of("where"));
  fields.finish();
  try {
    check_supervision(segment);
  } catch (const UserError& error) {
    throw_json_error(origin, place, error.problems()[0].error);
  }
  return segment;
}

}  // namespace

Json SegmentWriter::add(const std::vector<std::shared_ptr<const Segment>>& segments) {
  Json numbers = Json::array();
  for (const auto& segment : segments) {
    const auto [found, is_new] =
        numbers_.emplace(segment.get(), static_cast<int64_t>(segments_.size()));
    if (is_new) segments_.push_back(segment);
    numbers.push_back(found->second);
  }
  return numbers;
}

std::set<std::string> SegmentWriter::slot_kinds() const {
  std::set<std::string> kinds{kCoordSlots};  // always present, as in older files
  for (const auto& segment : segments_) {
    for (const auto& [kind, slots] : segment->slots) kinds.insert(kind);
  }
  return kinds;
}

Json SegmentWriter::descriptions() const {
  const std::set<std::string> kinds = slot_kinds();
  Json list = Json::array();
  for (const auto& segment : segments_) list.push_back(describe(*segment, kinds));
  return list;
}

NamedTensors SegmentWriter::tensors() const {
  std::vector<int32_t> ids;
  std::vector<uint8_t> marks;
  std::vector<int32_t> other_labels;
  for (const auto& segment : segments_) {
    REMATCH_CHECK(segment->labels.size() == segment->token_ids.size(),
                  fmt::format("{} {}", segment->labels.size(), segment->token_ids.size()));
    for (size_t i = 0; i < segment->token_ids.size(); ++i) {
      const int id = segment->token_ids[i], label = segment->labels[i];
      if (label != id && label != kIgnoreLabel)
        other_labels.insert(other_labels.end(), {static_cast<int32_t>(ids.size()), label});
      ids.push_back(id);
      marks.push_back(label == kIgnoreLabel ? 0 : 1);
    }
  }
  const auto num_tokens = static_cast<int64_t>(ids.size());
  NamedTensors tensors{
      {kTokenIds, at::from_blob(ids.data(), {num_tokens}, at::kInt).clone()},
      {kIsLabel, at::from_blob(marks.data(), {num_tokens}, at::kByte).to(at::kBool)}};
  if (!other_labels.empty()) {
    const auto num_labels = static_cast<int64_t>(other_labels.size()) / 2;
    tensors.emplace_back(kOtherLabels,
                         at::from_blob(other_labels.data(), {num_labels, 2}, at::kInt).clone());
  }
  for (const std::string& kind : slot_kinds()) {
    std::vector<int32_t> values;
    for (const auto& segment : segments_) {
      for (const Slot& slot : segment->slots_of(kind)) {
        values.insert(values.end(),
                      {slot.position, slot.target, slot.source == SlotSource::kPrefix ? 0 : 1});
      }
    }
    const auto num_slots = static_cast<int64_t>(values.size()) / kSlotWidth;
    tensors.emplace_back(kind + kSlots,
                         at::from_blob(values.data(), {num_slots, kSlotWidth}, at::kInt).clone());
  }
  return tensors;
}

std::vector<std::shared_ptr<const Segment>> read_segments(const Json& descriptions,
                                                          const NamedTensors& tensors,
                                                          int64_t vocab_size,
                                                          const JsonOrigin& origin) {
  TensorReader reader(tensors, origin);
  std::vector<std::shared_ptr<const Segment>> segments;
  for (size_t i = 0; i < descriptions.size(); ++i) {
    segments.push_back(std::make_shared<const Segment>(
        read_segment(descriptions[i], reader, vocab_size, origin, fmt::format("segments[{}]", i))));
  }
  if (reader.tokens_left() > 0 || reader.slots_left() > 0) {
    throw_json_error(origin, "segments",
                     fmt::format("{} segments leave {} tokens and {} slots unused", segments.size(),
                                 reader.tokens_left(), reader.slots_left()));
  }
  return segments;
}

std::vector<std::shared_ptr<const Segment>> segments_by_number(
    const Json& numbers, const std::vector<std::shared_ptr<const Segment>>& segments,
    const JsonOrigin& origin, const std::string& place) {
  if (!numbers.is_array()) throw_json_error(origin, place, "expected a list of segment numbers");
  std::vector<std::shared_ptr<const Segment>> chosen;
  std::unordered_set<int64_t> seen;
  for (const Json& value : numbers) {
    const int64_t number =
        json_integer(value, origin, place, 0, static_cast<int64_t>(segments.size()) - 1);
    if (!seen.insert(number).second)
      throw_json_error(origin, place, fmt::format("segment {} appears twice in it", number));
    chosen.push_back(segments[static_cast<size_t>(number)]);
  }
  return chosen;
}

}  // namespace rematch
