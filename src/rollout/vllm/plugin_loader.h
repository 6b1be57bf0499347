#pragma once
#include <string>

#include "rollout/vllm/plugin_api.h"

namespace rematch {

/// A Python interpreter and what its environment holds; empty texts for what is not there.
struct Interpreter {
  std::string command;         ///< as it was asked for
  std::string executable;      ///< sys.executable
  std::string python_version;  ///< "3.11"
  std::string libpython;       ///< path of its shared library
  std::string torch_version;
  std::string vllm_version;
  std::string problem;  ///< why it could not be asked; then everything else is empty
};

/// Asks an interpreter in a process of its own; imports neither torch nor vLLM. Cost: a tenth of a second.
Interpreter probe_interpreter(const std::string& command);

/// The interpreter of `vllm.python`. The default, "python3", means the one on PATH when it has vLLM, else `.venv-vllm` of a directory above
/// the program (what scripts/setup-vllm makes), else the one on PATH.
Interpreter find_interpreter(const std::string& python);

/// Refuses an environment that cannot work with this build. @throws UserError (environment): no interpreter, no vLLM, another torch
void check_interpreter(const Interpreter& interpreter);

/// Path of librematch_vllm.so beside the program; empty when this build has none.
std::string plugin_path();

/// Opens the plug-in with the interpreter's library and imports vLLM, once a process: seconds. @return lives as long as the process
/// @throws UserError (environment) saying what is missing or what the import said
VllmPlugin& open_plugin(const Interpreter& interpreter);

}  // namespace rematch
