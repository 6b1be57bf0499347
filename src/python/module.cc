// rematch._stages: the stages of the loop for Python. The package (python/rematch/stages.py) gives
// them their signatures and types.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>
#include <tuple>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "python/json_of.h"
#include "python/scene_scores.h"
#include "stages/stage.h"

namespace nb = nanobind;

namespace rematch {
namespace {

using MakeStage = std::unique_ptr<Stage> (*)(const StageOptions&);

/// The stage of a model directory, read once: a tokenizer takes longer to load than a thousand
/// answers to parse. Stages answer from several threads at a time.
std::shared_ptr<Stage> stage_of(MakeStage make, const StageOptions& options) {
  static std::mutex mutex;
  static std::map<std::tuple<MakeStage, std::string, std::string>, std::shared_ptr<Stage>> stages;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Stage>& stage = stages[{make, options.model_dir, options.answer_format}];
  if (!stage) stage = make(options);
  return stage;
}

/// Raises rematch.Error with the problems that were found.
[[noreturn]] void raise(const UserError& error) {
  nb::list problems;
  for (const Problem& problem : error.problems()) {
    nb::dict fields;
    fields["error"] = problem.error;
    fields["where"] = problem.where;
    fields["what"] = problem.what;
    fields["fix"] = problem.fix;
    problems.append(fields);
  }
  const nb::object type = nb::module_::import_("rematch.errors").attr("Error");
  const nb::object value = type(kind_name(error.kind()), problems);
  PyErr_SetObject(type.ptr(), value.ptr());
  throw nb::python_error();
}

/// Answers an input without the GIL: other threads of the interpreter run on.
template <typename Answer>
nb::object answered(nb::handle input, Answer answer) {
  try {
    const Json json = json_of(input, "input");
    Json result;
    {
      const nb::gil_scoped_release released;
      result = answer(json);
    }
    return python_of(result);
  } catch (const UserError& error) {
    raise(error);
  }
}

nb::object of_stage(MakeStage make, const StageOptions& options, nb::handle input) {
  return answered(input, [&](const Json& json) { return stage_of(make, options)->run(json); });
}

}  // namespace
}  // namespace rematch

NB_MODULE(_stages, module) {
  using namespace rematch;  // NOLINT(google-build-using-namespace): the macro opens no namespace of ours
  using nb::arg;
  module.def(
      "parse",
      [](const std::string& model, const std::string& answer_format, nb::handle input) {
        return of_stage(make_parse_stage, {.model_dir = model, .answer_format = answer_format},
                        input);
      },
      arg("model"), arg("answer_format"), arg("input"));
  module.def(
      "segment",
      [](const std::string& model, const std::string& answer_format, nb::handle input) {
        return of_stage(make_segment_stage, {.model_dir = model, .answer_format = answer_format},
                        input);
      },
      arg("model"), arg("answer_format"), arg("input"));
  module.def(
      "match", [](nb::handle input) { return of_stage(make_match_stage, StageOptions(), input); },
      arg("input"));
  module.def(
      "pack", [](nb::handle input) { return of_stage(make_pack_stage, StageOptions(), input); },
      arg("input"));
  module.def(
      "evaluate", [](nb::handle input) { return answered(input, score_scenes); }, arg("input"));
}
