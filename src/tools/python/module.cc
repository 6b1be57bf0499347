// rematch._stages: the stages of the loop for Python. The package (python/rematch/stages.py) gives
// them their signatures and types.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "tools/python/convert.h"
#include "tools/python/scene_scores.h"
#include "tools/stages/stage.h"

namespace nb = nanobind;

namespace rematch {
namespace {

using MakeStage = std::unique_ptr<Stage> (*)(const StageOptions&);

/// Returns the cached stage of a model directory: loading a tokenizer takes longer than parsing a
/// thousand answers. Stages are thread-safe.
std::shared_ptr<Stage> cached_stage(MakeStage make, const StageOptions& options) {
  static std::mutex mutex;
  static std::map<std::tuple<MakeStage, std::string, std::string>, std::shared_ptr<Stage>> stages;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Stage>& stage = stages[{make, options.model_dir, options.answer_format}];
  if (!stage) stage = make(options);
  return stage;
}

/// Raises rematch.Error with the problems of an error.
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

/// Computes an answer without the GIL, so that other Python threads can run.
template <typename Compute>
nb::object answer(nb::handle input, Compute compute) {
  try {
    const Json json = to_json(input, "input");
    Json result;
    {
      const nb::gil_scoped_release released;
      result = compute(json);
    }
    return to_python(result);
  } catch (const UserError& error) {
    raise(error);
  }
}

nb::object answer_by_stage(MakeStage make, const StageOptions& options, nb::handle input) {
  return answer(input, [&](const Json& json) { return cached_stage(make, options)->run(json); });
}

}  // namespace
}  // namespace rematch

NB_MODULE(_stages, module) {
  // The macro opens no namespace of ours.
  using namespace rematch;  // NOLINT(google-build-using-namespace)
  using nb::arg;
  module.def(
      "parse",
      [](const std::string& model, const std::string& answer_format, nb::handle input) {
        return answer_by_stage(make_parse_stage,
                               {.model_dir = model, .answer_format = answer_format}, input);
      },
      arg("model"), arg("answer_format"), arg("input"));
  module.def(
      "segment",
      [](const std::string& model, const std::string& answer_format, nb::handle input) {
        return answer_by_stage(make_segment_stage,
                               {.model_dir = model, .answer_format = answer_format}, input);
      },
      arg("model"), arg("answer_format"), arg("input"));
  module.def(
      "match",
      [](nb::handle input) { return answer_by_stage(make_match_stage, StageOptions(), input); },
      arg("input"));
  module.def(
      "pack",
      [](nb::handle input) { return answer_by_stage(make_pack_stage, StageOptions(), input); },
      arg("input"));
  module.def(
      "evaluate", [](nb::handle input) { return answer(input, score_scenes); }, arg("input"));
}
