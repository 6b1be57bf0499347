#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "program/assembly/predictor.h"
#include "tools/draw/panel.h"
#include "tools/records/coco_json.h"

namespace rematch {

/// The form in which answers are shown.
struct PredictFormat {
  std::string draw_dir, out;     ///< empty = none, standard output
  std::string format = "jsonl";  ///< or "coco"
  std::string ids;               ///< with "coco": the COCO file whose ids are used; empty = none
  double min_score = 0;          ///< objects below it are left out
};

/// The answers of `rematch predict`: lines or a document, in a file or on standard output, and
/// drawings.
class PredictOutput {
 public:
  /// Makes the directory of the drawings and the file. Format and terminal must outlive it.
  /// @throws UserError (configuration) if a drawing or the file would replace an input
  PredictOutput(const PredictFormat& format, const Strings& images, InputFiles inputs,
                Terminal& terminal);

  /// Takes the next answer.
  void add(Prediction one);
  int64_t num_added() const { return std::ssize(all_); }
  /// Ends the output, and says what went wrong.
  /// @throws UserError (data) that lists the images without an answer
  void finish();

 private:
  void write(const std::string& text);

  const PredictFormat& format_;
  InputFiles inputs_;
  Terminal& terminal_;
  std::optional<OutputFile> file_;
  std::optional<CocoIds> ids_;
  bool prints_ = true;    ///< standard output gets the answers
  bool is_read_ = false;  ///< by a user, not by a program
  std::vector<Prediction> all_;
  ClassColors colors_;
  int64_t num_unread_ = 0;
};

}  // namespace rematch
