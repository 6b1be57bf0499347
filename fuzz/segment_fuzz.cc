// The torch-free journey of an answer: any ids → parse → match → target → pack. Segments that obey
// their rules, rows that lose none, or an error for the user.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/metrics.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/segment_checks.h"
#include "learn/estep/teach/target_policy.h"
#include "learn/pack/packer.h"
#include "model/text/stop_ids.h"
#include "model/text/tokenizer.h"

namespace {

struct Vocab {
  std::string directory = std::string(REMATCH_SOURCE_DIR) + "/tests/golden/tokenizer";
  std::shared_ptr<const rematch::Tokenizer> tokenizer = rematch::Tokenizer::load(directory);
  rematch::CoordVocab coord = rematch::CoordVocab::from(*tokenizer, directory);
  std::unique_ptr<const rematch::AnswerFormat> coord_tokens =
      rematch::make_answer_format("coord_tokens", tokenizer, directory);
  std::unique_ptr<const rematch::AnswerFormat> digits =
      rematch::make_answer_format("qwen_json", tokenizer, directory);
  std::vector<int> stop_ids = rematch::read_stop_ids(directory, *tokenizer);
};

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  int next() { return empty() ? 0 : data_[at_++]; }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

// Bytes stand for themselves; 0x1A and a byte is a coord token, 0x1B and a byte any small id; 0x1E
// ends an answer.
std::vector<int> read_answer(Bytes& bytes, const Vocab& vocab) {
  std::vector<int> ids;
  while (!bytes.empty()) {
    const int byte = bytes.next();
    if (byte == 0x1E) break;
    if (byte == 0x1A) {
      ids.push_back(vocab.coord.id_of(bytes.next() * 3));
    } else if (byte == 0x1B) {
      ids.push_back(bytes.next() * 7 - 3);
    } else {
      ids.push_back(vocab.tokenizer->byte_token(static_cast<uint8_t>(byte)));
    }
  }
  return ids;
}

std::vector<rematch::SceneObject> read_truth(Bytes& bytes) {
  static const std::vector<std::string> kDescs = {"cat",     "black cat",    "\"x\"\\", "猫",
                                                  "a\u0301", "<|im_start|>", " x"};
  std::vector<rematch::SceneObject> objects(static_cast<size_t>(bytes.next() % 4));
  for (rematch::SceneObject& object : objects) {
    object.desc = kDescs[static_cast<size_t>(bytes.next()) % kDescs.size()];
    const int num_points = bytes.next() % 6;
    object.geometry.kind =
        num_points < 3 ? rematch::GeometryKind::kBbox2d : rematch::GeometryKind::kPoly;
    for (int i = 0; i < (num_points < 3 ? 4 : 2 * num_points); ++i)
      object.geometry.bins.push_back(bytes.next() * 3);
  }
  return objects;
}

using Segments = std::vector<std::shared_ptr<const rematch::Segment>>;

void check_rows(const Segments& segments, const rematch::PackSettings& pack, int packing_length) {
  rematch::Packer packer({.pack = pack, .packing_length = packing_length, .warn = {}});
  rematch::MetricsBag metrics;
  std::multiset<const rematch::Segment*> given, found;
  for (const auto& segment : segments) given.insert(segment.get());
  try {
    for (const rematch::PackedRow& row : packer.pack({segments}, metrics)) {
      REMATCH_CHECK(row.total_len() <= packing_length && !row.segments.empty(), "row");
      for (const auto& segment : row.segments) found.insert(segment.get());
    }
  } catch (const rematch::UserError& error) {
    const bool fits = std::all_of(segments.begin(), segments.end(), [&](const auto& one) {
      return one->encoded_len() <= packing_length;
    });
    REMATCH_CHECK(!fits || static_cast<int>(segments.size()) > pack.buffer, error.what());
    return;
  }
  for (const auto& segment : packer.waiting()) found.insert(segment.get());
  REMATCH_CHECK(found == given, "segments");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Vocab vocab;
  static const rematch::Prompt prompt{
      .sample_id = 7, .token_ids = {1, 2, 3}, .images = {}, .where = "fuzz:1"};
  if (size > 2048) return 0;
  Bytes bytes(data, size);
  const int choice = bytes.next();
  rematch::TargetSettings target;
  target.policy = (choice & 1) != 0 ? "rewrite" : "append";
  // Polygons, which digits cannot write, are errors of the data.
  const rematch::AnswerFormat& format =
      target.policy == "rewrite" && (choice & 32) != 0 ? *vocab.digits : *vocab.coord_tokens;
  target.rewrite_order = (choice & 2) == 0   ? rematch::RewriteOrder::kTruth
                         : (choice & 4) == 0 ? rematch::RewriteOrder::kRollout
                                             : rematch::RewriteOrder::kOwn;
  target.incomplete_rollouts =
      (choice & 16) != 0 ? rematch::IncompleteRollouts::kEmpty : rematch::IncompleteRollouts::kKeep;
  rematch::MatchSettings match;
  match.maskiou_resolution = 32;
  match.maskiou_gate = (choice & 64) != 0 ? 0 : 0.3;
  rematch::PackSettings pack{.enabled = true, .buffer = 3};
  pack.selector = (choice & 128) != 0 ? rematch::PackingSelector::kOptimal
                                      : rematch::PackingSelector::kBinpacking;
  const int packing_length = 16 + 4 * bytes.next();
  Segments segments;
  while (!bytes.empty() && segments.size() < 5) {
    const std::vector<rematch::SceneObject> truth = read_truth(bytes);
    const rematch::ParsedRollout parsed =
        format.parse(read_answer(bytes, vocab), vocab.stop_ids, prompt);
    const rematch::Matching matching =
        rematch::match_objects(rematch::to_scene(parsed.objects), truth, match);
    try {
      rematch::Segment segment =
          rematch::build_segment({prompt, parsed, matching, truth}, format, target).segment;
      rematch::check_supervision(segment);
      REMATCH_CHECK(
          segment.encoded_len() == segment.prompt_len + segment.prefix_len + segment.append_len + 1,
          "length");
      REMATCH_CHECK(segment.labels.size() == segment.token_ids.size(), "labels");
      segments.push_back(std::make_shared<const rematch::Segment>(std::move(segment)));
    } catch (const rematch::UserError& error) {
      REMATCH_CHECK(error.kind() == rematch::ErrorKind::kData, error.what());
    }
  }
  if (!segments.empty()) check_rows(segments, pack, packing_length);
  return 0;
}
