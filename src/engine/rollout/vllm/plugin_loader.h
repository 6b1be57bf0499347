#pragma once
#include <string>

#include "engine/rollout/vllm/plugin_api.h"

namespace rematch {

/// A Python interpreter and its environment; missing values are empty.
struct Interpreter {
  std::string command;         ///< value of `vllm.python`, or a path
  std::string executable;      ///< sys.executable
  std::string python_version;  ///< "3.11"
  std::string libpython;       ///< path of its shared library
  std::string torch_version;
  std::string vllm_version;
  std::string problem;  ///< reason if it could not be queried; the rest is then empty
};

/// Queries an interpreter in a separate process; imports neither torch nor vLLM. Cost: a tenth of a
/// second.
Interpreter probe_interpreter(const std::string& command);

/// Finds the interpreter for `vllm.python`. The default, "python3", is the one on PATH if it has
/// vLLM, else that of `.venv-vllm` (made by scripts/setup-vllm) in a directory above the program,
/// else the one on PATH.
Interpreter find_interpreter(const std::string& python);

/// Rejects an environment that cannot work with this build.
/// @throws UserError (environment): no interpreter, no vLLM, another torch
void check_interpreter(const Interpreter& interpreter);

/// Path of librematch_vllm.so next to the program; empty if this build has none.
std::string plugin_path();

/// Opens the plug-in with the interpreter's library and imports vLLM, once per process; takes
/// seconds. The result lives as long as the process.
/// @throws UserError (environment) with the missing part or the reason of a failed import
VllmPlugin& open_plugin(const Interpreter& interpreter);

}  // namespace rematch
