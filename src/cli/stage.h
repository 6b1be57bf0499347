#pragma once
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json.h"

namespace rematch {

/// Command-line options a stage may take (STAGES.md); a stage names those it needs in its table row.
struct StageOptions {
  std::string model_dir;          ///< --model
  std::string output_dir;         ///< --output
  std::string backend = "hf";     ///< --backend
  std::string dtype = "float32";  ///< --dtype
  std::string device;             ///< --device; empty = automatic
  int batch_size = 1;             ///< --batch-size, lines per run() call
};

/// One stage of the loop as JSON in, JSON out. Implementations live in cli/stages/, one short file each.
class Stage {
 public:
  virtual ~Stage() = default;
  /// Answers one input line (its "id" already taken out). @throws UserError, which becomes the line's "error".
  virtual Json run(const Json& input) = 0;
  /// Answers several lines together (`generate`); the default runs them one by one. The answer has the size of `inputs`.
  /// @param errors  same size, pre-filled null: an entry set to an error object fails that line only.
  virtual std::vector<Json> run_batch(const std::vector<Json>& inputs, std::vector<Json>& errors);

  /// Called before run_batch: for each input its id as text, or "line-N" without an id.
  void set_line_names(std::vector<std::string> names);

 protected:
  /// Where a stage writes the file of the line it is answering: `directory`/<id>.safetensors.
  /// @throws UserError (data) when the id cannot be a file name
  std::string line_file(const std::string& directory) const;

  std::vector<std::string> line_names_;
  size_t line_idx_ = 0;  ///< index of the input in run_batch; its default keeps it
};

/// A row of the ONE table of stages (cli/stage_table.cc).
struct StageRow {
  const char* name;
  const char* summary;
  std::vector<std::string> options;  ///< which of StageOptions it takes: "model", "output", "backend", "dtype", "batch-size", "device"
  std::unique_ptr<Stage> (*make)(const StageOptions&);
};

/// Runs JSON lines from `in` to `out`, same order, "id" echoed. A bad line gives {"id", "error": {kind, message, fix}} only.
/// @return 0, or 3 when any line failed
int run_stage(Stage& stage, int batch_size, std::istream& in, std::ostream& out);

/// The members of an "options" object or of an input: reads typed values and refuses unknown keys.
/// Every getter remembers its key; finish() throws a UserError (config) naming unknown keys, with did-you-mean.
class FieldReader {
 public:
  /// @param value  must be an object (or null = empty), else UserError. @param what  its name in errors, e.g. "input", "options"
  FieldReader(const Json& value, std::string what);
  bool has(const std::string& key);
  /// The raw member; @throws UserError (data) when absent.
  const Json& required(const std::string& key);
  /// The raw member or nullptr.
  const Json* optional(const std::string& key);
  double number(const std::string& key, double fallback);
  int integer(const std::string& key, int fallback);
  bool boolean(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);
  std::string required_text(const std::string& key);
  /// A list of integers within int range. @throws UserError (data)
  std::vector<int> required_integers(const std::string& key);
  /// A list of strings such as image paths; empty when absent or null. @throws UserError (data)
  std::vector<std::string> texts(const std::string& key);
  void finish() const;

 private:
  const Json* value_;
  std::string what_;
  std::vector<std::string> asked_;
};

// Factories, one for each file of cli/stages/.
std::unique_ptr<Stage> make_tokenize_stage(const StageOptions&);
std::unique_ptr<Stage> make_render_stage(const StageOptions&);
std::unique_ptr<Stage> make_pixels_stage(const StageOptions&);
std::unique_ptr<Stage> make_parse_stage(const StageOptions&);
std::unique_ptr<Stage> make_match_stage(const StageOptions&);
std::unique_ptr<Stage> make_segment_stage(const StageOptions&);
std::unique_ptr<Stage> make_pack_stage(const StageOptions&);
std::unique_ptr<Stage> make_loss_stage(const StageOptions&);
std::unique_ptr<Stage> make_logits_stage(const StageOptions&);
std::unique_ptr<Stage> make_generate_stage(const StageOptions&);
std::unique_ptr<Stage> make_grad_stage(const StageOptions&);

}  // namespace rematch
