#pragma once
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json_fields.h"

namespace rematch {

/// Command-line options of stages (STAGES.md). StageRow lists the options of each stage.
struct StageOptions {
  std::string model_dir;          ///< --model
  std::string answer_format;      ///< --answer-format; empty = format of the model directory
  std::string output_dir;         ///< --out
  std::string backend = "hf";     ///< --backend
  std::string dtype = "float32";  ///< --dtype
  std::string device;             ///< --device; empty = automatic
  int batch_size = 1;             ///< --batch-size, lines per run() call
};

/// One stage of the loop as JSON in, JSON out; one short file each.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Answers one input line, without its "id".
  /// @throws UserError, which becomes the line's "error".
  virtual Json run(const Json& input) = 0;
  /// Answers several lines together (`generate`); the default runs them one by one. Returns one
  /// answer for each input.
  /// @param names   of the lines: the id as text, or "line-N" without an id
  /// @param errors  one null for each input; an error object fails that line only
  virtual std::vector<Json> run_batch(const std::vector<Json>& inputs, const Strings& names,
                                      std::vector<Json>& errors);

 protected:
  std::string line_name_;  ///< of the line that the default run_batch() runs
};

/// An entry of the tables of stages (public_stages()).
struct StageRow {
  const char* name;
  const char* summary;
  /// its command-line options: "model", "answer-format", "out", "backend", "dtype",
  /// "batch-size", "device"
  Strings options;
  std::unique_ptr<Stage> (*make)(const StageOptions&);
};

/// Answers JSON lines from `in` on `out`, in the same order, with the "id" repeated. A bad line
/// gives only {"id", "error": {kind, message, fix}}.
/// @return 0, or 3 when any line failed
int run_stage(Stage& stage, int batch_size, std::istream& in, std::ostream& out);

/// Error texts for JsonFields of an input line. An invalid value is an error of kind data, an
/// unknown key of kind config; null means the default.
const JsonOrigin& input_origin();

// Factories of the public stages.
std::unique_ptr<Stage> make_parse_stage(const StageOptions&);
std::unique_ptr<Stage> make_match_stage(const StageOptions&);
std::unique_ptr<Stage> make_segment_stage(const StageOptions&);
std::unique_ptr<Stage> make_pack_stage(const StageOptions&);

/// Stages of `rematch` and of the Python package: parse, match, segment and pack.
const std::vector<StageRow>& public_stages();

}  // namespace rematch
