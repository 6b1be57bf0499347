#include "engine/rollout/vllm/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "engine/rollout/vllm/vllm_errors.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultPython = "python3";
constexpr const char* kVllmEnvironment = ".venv-vllm/bin/python";
constexpr const char* kPluginFile = "librematch_vllm.so";
const std::string kPythonKey = kVllmSection + ".python";

// Reads versions from the packages' files: importing them takes seconds and may fail. Ignores the
// current directory, where `python -c` looks first.
constexpr const char* kProbe = R"PY(
import sys
sys.path[:] = [place for place in sys.path if place]
import importlib.metadata, importlib.util, json, os, re, sysconfig
def version(name):
    try:
        spec = importlib.util.find_spec(name)
    except Exception:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return ""
    for place in spec.submodule_search_locations:
        for file in ("version.py", "_version.py", "__init__.py"):
            try:
                text = open(os.path.join(place, file), encoding="utf-8").read()
            except OSError:
                continue
            assignment = r"^__version__\s*(?::[^=\n]*)?=(?:[^\"\n]*=)?\s*"
            match = re.search(assignment + r"[\"\x27]([^\"\x27]+)", text, re.M)
            if match:
                return match.group(1)
    try:
        return importlib.metadata.version(name)
    except Exception:
        return "of unknown version"
get = sysconfig.get_config_var
libdir = get("LIBDIR") or ""
arch = os.path.join(libdir, get("MULTIARCH") or "")
places = [libdir, arch, os.path.join(sys.base_prefix, "lib")]
names = [os.path.join(place, get("INSTSONAME") or "") for place in places]
library = next((name for name in names if ".so" in name and os.path.isfile(name)), "")
print("REMATCH" + json.dumps({"executable": sys.executable, "libpython": library,
                              "python": "%d.%d" % sys.version_info[:2],
                              "torch": version("torch"), "vllm": version("vllm")}))
)PY";

std::string run_command(const std::string& command) {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  for (size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    output.append(buffer, count);
  pclose(pipe);
  return output;
}

fs::path program_directory() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

// The interpreter of the environment made by scripts/setup-vllm, searched in the directories above
// the program.
std::string find_vllm_environment() {
  for (fs::path directory = program_directory(); !directory.empty();
       directory = directory.parent_path()) {
    const fs::path candidate = directory / kVllmEnvironment;
    if (path_exists(candidate)) return candidate.string();
    if (directory == directory.root_path()) break;
  }
  return {};
}

UserError environment_error(const std::string& error, const std::string& what,
                            const std::string& fix) {
  return vllm_error(ErrorKind::kEnvironment, error, kPythonKey, what, fix);
}

// A release without its build: 2.13.0+cu130 and 2.13.0+cpu have the same interface.
std::string release_of(const std::string& version) { return version.substr(0, version.find('+')); }

std::string describe(const Interpreter& interpreter) {
  return interpreter.executable.empty()
             ? interpreter.command
             : fmt::format("{} (Python {})", interpreter.executable, interpreter.python_version);
}

template <typename Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

VllmPlugin& load(const Interpreter& interpreter) {
  const std::string path = plugin_path();
  // Global, because extension modules such as numpy's need Python's symbols.
  if (dlopen(interpreter.libpython.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    throw environment_error("the interpreter's library cannot be opened", dlerror(),
                            "set vllm.python to another interpreter");
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw environment_error("the vLLM plug-in cannot be opened",
                            fmt::format("{}; Python {}", dlerror(), interpreter.python_version),
                            "build with the Python that runs vLLM (scripts/build)");
  }
  const auto abi = symbol<VllmPluginAbi>(library, "rematch_vllm_plugin_abi");
  const auto instance = symbol<VllmPluginInstance>(library, "rematch_vllm_plugin");
  if (abi == nullptr || instance == nullptr || abi() != kVllmPluginAbi) {
    throw environment_error("the vLLM plug-in is from a different build", path,
                            "rebuild (scripts/build)");
  }
  const auto python = symbol<VllmPluginPython>(library, "rematch_vllm_plugin_python");
  if (python == nullptr || interpreter.python_version != python()) {
    throw environment_error(
        "the vLLM plug-in was built for another Python",
        fmt::format("built for {}; {}", python == nullptr ? "an unknown version" : python(),
                    describe(interpreter)),
        "set vllm.python to an environment of that version, or rebuild with this one "
        "(scripts/build)");
  }
  return *instance();
}

}  // namespace

Interpreter probe_interpreter(const std::string& command) {
  Interpreter found{.command = command};
  const std::string output =
      run_command(fmt::format("{} -c {} 2>&1", shell_word(command), shell_word(kProbe)));
  const size_t start = output.rfind("REMATCH{");
  if (start == std::string::npos) {
    const Strings lines = split(output.substr(0, output.find_last_not_of("\n") + 1), '\n');
    found.problem = lines.back().empty() ? "no output" : lines.back();
    return found;
  }
  const Json facts = parse_json(output.substr(start + 7, output.find('\n', start) - start - 7),
                                "the output of " + command);
  found.executable = facts.value("executable", "");
  found.python_version = facts.value("python", "");
  found.libpython = facts.value("libpython", "");
  found.torch_version = facts.value("torch", "");
  found.vllm_version = facts.value("vllm", "");
  return found;
}

Interpreter find_interpreter(const std::string& python) {
  // Cached, because a run calls this three times.
  static std::map<std::string, Interpreter> known;
  const auto found = known.find(python);
  if (found != known.end()) return found->second;
  Interpreter chosen = probe_interpreter(python);
  if (python == kDefaultPython && chosen.vllm_version.empty()) {
    const std::string own = find_vllm_environment();
    if (!own.empty()) chosen = probe_interpreter(own);
  }
  return known[python] = chosen;
}

void check_interpreter(const Interpreter& interpreter) {
  const std::string advice =
      "run scripts/setup-vllm, or set vllm.python to an interpreter whose environment has vLLM";
  if (!interpreter.problem.empty()) {
    throw environment_error("there is no Python interpreter for vLLM",
                            fmt::format("{}: {}", interpreter.command, interpreter.problem),
                            advice);
  }
  if (interpreter.vllm_version.empty()) {
    throw environment_error("vLLM is not installed",
                            fmt::format("{} has no module vllm", describe(interpreter)), advice);
  }
  if (release_of(interpreter.torch_version) != release_of(REMATCH_TORCH_VERSION)) {
    throw environment_error(
        "vLLM's torch is not the one that this program is built with",
        fmt::format(
            "{} has torch {}; the program is built with {}; a process can hold only one libtorch",
            describe(interpreter),
            interpreter.torch_version.empty() ? "(none)" : interpreter.torch_version,
            REMATCH_TORCH_VERSION),
        advice);
  }
  if (interpreter.libpython.empty()) {
    throw environment_error("the interpreter has no shared library",
                            fmt::format("{} has no libpython", describe(interpreter)),
                            "install one that has it (Debian: python3-dev)");
  }
}

std::string plugin_path() {
  std::error_code ignored;
  const fs::path here = program_directory();
  for (const fs::path& directory : {here, here / "../lib", here / "../../lib"}) {
    if (path_exists(directory / kPluginFile))
      return fs::canonical(directory / kPluginFile, ignored).string();
  }
  return {};
}

VllmPlugin& open_plugin(const Interpreter& interpreter) {
  static VllmPlugin* plugin = nullptr;
  static std::string executable;
  if (plugin != nullptr && executable == interpreter.executable) return *plugin;
  if (plugin != nullptr) {
    throw environment_error("a process can hold only one Python interpreter",
                            fmt::format("{} is already running", executable),
                            "start another process");
  }
  if (plugin_path().empty()) {
    throw environment_error("this build has no vLLM plug-in",
                            fmt::format("{} is not next to the program", kPluginFile),
                            "install Python's headers (python3-dev) and rebuild (scripts/build)");
  }
  VllmPlugin& loaded = load(interpreter);
  try {
    loaded.import_engine(interpreter.executable);
  } catch (const PythonError& error) {
    throw_if_interrupted();  // the signal ended a helper process of the import
    throw environment_error("vLLM cannot be imported",
                            fmt::format("{}: {}", describe(interpreter), error.what()),
                            "repair that environment: run scripts/setup-vllm --fresh");
  }
  executable = interpreter.executable;
  plugin = &loaded;
  return loaded;
}

}  // namespace rematch
