#pragma once
#include <string>

#include "rollout/vllm/plugin_api.h"

namespace rematch {

/// A Python interpreter and the content of its environment; empty strings for what is missing.
struct Interpreter {
  std::string command;         ///< as requested
  std::string executable;      ///< sys.executable
  std::string python_version;  ///< "3.11"
  std::string libpython;       ///< path of its shared library
  std::string torch_version;
  std::string vllm_version;
  std::string problem;  ///< why it could not be queried; everything else is then empty
};

/// Queries an interpreter in a separate process; imports neither torch nor vLLM. Cost: a tenth of a
/// second.
Interpreter probe_interpreter(const std::string& command);

/// The interpreter of `vllm.python`. The default, "python3", means the one on PATH when it has
/// vLLM, else `.venv-vllm` of a directory above the program (what scripts/setup-vllm makes), else
/// the one on PATH.
Interpreter find_interpreter(const std::string& python);

/// Rejects an environment that cannot work with this build. @throws UserError (environment): no
/// interpreter, no vLLM, another torch
void check_interpreter(const Interpreter& interpreter);

/// Path of librematch_vllm.so next to the program; empty when this build has none.
std::string plugin_path();

/// Opens the plug-in with the interpreter's library and imports vLLM, once per process: takes
/// seconds. @return lives as long as the process
/// @throws UserError (environment) saying what is missing or why the import failed
VllmPlugin& open_plugin(const Interpreter& interpreter);

}  // namespace rematch
