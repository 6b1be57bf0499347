// The only code that uses Python. plugin_api.h documents the functions.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
// After Python.h, which defines macros that other headers test.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <torch/csrc/autograd/python_variable.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "engine/rollout/vllm/plugin_api.h"

namespace rematch {
namespace {

// rematch_vllm.py, from CMake.
constexpr char kDriverSource[] =
#include "rematch_vllm.py.inc"
    ;

/// Owns one reference.
class Object {
 public:
  explicit Object(PyObject* owned) : owned_(owned) {}
  Object(Object&& other) noexcept : owned_(other.owned_) { other.owned_ = nullptr; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { Py_XDECREF(owned_); }
  PyObject* get() const { return owned_; }
  PyObject* release() {
    PyObject* const object = owned_;
    owned_ = nullptr;
    return object;
  }

 private:
  PyObject* owned_;
};

/// Holds the interpreter lock for one call; backward passes and data threads run without it.
class Lock {
 public:
  Lock() : state_(PyGILState_Ensure()) {}
  ~Lock() { PyGILState_Release(state_); }
  Lock(const Lock&) = delete;

 private:
  PyGILState_STATE state_;
};

/// Preserves signal handlers, the number of threads and the autograd mode.
class PreserveProcess {
 public:
  PreserveProcess() : num_threads_(at::get_num_threads()) {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], nullptr, &handlers_[i]);
  }
  ~PreserveProcess() {
    for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &handlers_[i], nullptr);
    if (at::get_num_threads() != num_threads_) at::set_num_threads(num_threads_);
  }
  PreserveProcess(const PreserveProcess&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGCHLD, SIGUSR1,
                                       SIGUSR2, SIGSEGV, SIGABRT, SIGFPE,  SIGBUS,  SIGILL};
  std::array<struct sigaction, kSignals.size()> handlers_{};
  int num_threads_;
  at::AutoGradMode grad_{at::GradMode::is_enabled()};
};

/// Preserves the memory policy of the process: on a CPU vLLM binds all allocations, including those
/// of training, to one NUMA node.
class PreserveMemoryPolicy {
 public:
  PreserveMemoryPolicy()
      : known_(syscall(SYS_get_mempolicy, &mode_, nodes_.data(), kNodeBits, nullptr, 0) == 0) {}
  ~PreserveMemoryPolicy() {
    if (known_)
      syscall(SYS_set_mempolicy, mode_, mode_ == 0 ? nullptr : nodes_.data(),
              mode_ == 0 ? 0 : kNodeBits);
  }
  PreserveMemoryPolicy(const PreserveMemoryPolicy&) = delete;

 private:
  static constexpr unsigned long kNodeBits = 4096;
  int mode_ = 0;
  std::array<unsigned long, kNodeBits / (8 * sizeof(unsigned long))> nodes_{};
  bool known_;
};

/// Redirects standard output and error of C++ code that Python calls: the terminal belongs to the
/// program.
class RedirectOutput {
 public:
  explicit RedirectOutput(const std::string& path) {
    const int target = open(path.empty() ? "/dev/null" : path.c_str(),
                            O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (target < 0) return;
    for (size_t i = 0; i < kept_.size(); ++i) {
      kept_[i] = fcntl(static_cast<int>(i) + 1, F_DUPFD_CLOEXEC, 3);
      if (kept_[i] >= 0) dup2(target, static_cast<int>(i) + 1);
    }
    close(target);
  }
  ~RedirectOutput() {
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (kept_[i] < 0) continue;
      dup2(kept_[i], static_cast<int>(i) + 1);
      close(kept_[i]);
    }
  }
  RedirectOutput(const RedirectOutput&) = delete;

 private:
  std::array<int, 2> kept_{-1, -1};
};

std::string utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* const bytes = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, &size);
  if (bytes == nullptr) {
    PyErr_Clear();
    return "(not text)";
  }
  return {bytes, static_cast<size_t>(size)};
}

/// The pending exception as formatted by the driver; its traceback goes to the log.
[[noreturn]] void throw_pending(PyObject* driver) {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  if (value != nullptr && trace != nullptr) PyException_SetTraceback(value, trace);
  const Object owned_type(type), owned_value(value), owned_trace(trace);
  std::string text = "an unknown error in Python";
  if (value != nullptr) {
    const Object line(driver != nullptr ? PyObject_CallMethod(driver, "describe", "O", value)
                                        : PyObject_Str(value));
    if (line.get() != nullptr) text = utf8(line.get());
    PyErr_Clear();
  }
  throw PythonError(text);
}

class Plugin : public VllmPlugin {
 public:
  std::string import_engine(const std::string& executable) override {
    if (!version_.empty()) return version_;
    const PreserveProcess ours;
    const RedirectOutput quiet("");
    start_interpreter(executable);
    const Lock lock;
    load_driver();
    const Object facts = call(driver_, "import_engine");
    check_torch(facts.get());
    version_ = utf8(PyDict_GetItemString(facts.get(), "vllm"));
    return version_;
  }

  int64_t cuda_memory_bytes(int device) override {
    const Lock lock;
    return as_int64(call(driver_, "cuda_memory_bytes", "i", device).get());
  }

  int64_t start(const std::string& description) override {
    if (engine_ != nullptr && description == description_) return number_;
    const PreserveProcess ours;
    const PreserveMemoryPolicy memory_policy;
    const Lock lock;
    const RedirectOutput quiet(log_path(description));
    drop_engine();
    description_ = description;
    Object made = call(driver_, "start", "s#", description.data(),
                       static_cast<Py_ssize_t>(description.size()));
    engine_ = made.release();
    return number_ = ++num_started_;
  }
  void stop() override {
    if (engine_ == nullptr) return;
    const PreserveProcess ours;
    const Lock lock;
    const RedirectOutput quiet(log_path(description_));
    drop_engine();
  }
  int64_t running() const override { return engine_ == nullptr ? 0 : number_; }

  void begin_sync() override { call_engine("begin_sync"); }

  void load_weights(const std::vector<std::pair<std::string, at::Tensor>>& layer) override {
    const PreserveProcess ours;
    const Lock lock;
    const Object names(PyList_New(0)), tensors(PyList_New(0));
    for (const auto& [name, tensor] : layer) {
      const Object text(
          PyUnicode_FromStringAndSize(name.data(), static_cast<Py_ssize_t>(name.size())));
      // Shares the storage of the model; no copy.
      const Object wrapped(THPVariable_Wrap(tensor.detach()));
      if (text.get() == nullptr || wrapped.get() == nullptr) throw_pending(driver_);
      PyList_Append(names.get(), text.get());
      PyList_Append(tensors.get(), wrapped.get());
    }
    const at::NoGradGuard no_grad;
    call(engine_, "load", "OO", names.get(), tensors.get());
  }

  Strings end_sync(int64_t version) override {
    const PreserveProcess ours;
    const Lock lock;
    const at::NoGradGuard no_grad;
    const Object missing = call(engine_, "end_sync", "L", static_cast<long long>(version));
    Strings names;
    for (Py_ssize_t i = 0; i < PyList_Size(missing.get()); ++i)
      names.push_back(utf8(PyList_GetItem(missing.get(), i)));
    return names;
  }

  int64_t weights_version() override {
    const Lock lock;
    return as_int64(call(engine_, "weights_version").get());
  }

  void add(const VllmRequest& request) override {
    const PreserveProcess ours;
    const Lock lock;
    const Object ids(PyList_New(0)), images(PyList_New(0));
    for (const TokenId id : request.prompt_token_ids) {
      const Object number(PyLong_FromLong(id));
      PyList_Append(ids.get(), number.get());
    }
    for (const VllmImage& image : request.images) {
      const Object picture(Py_BuildValue("iiy#", image.width_px, image.height_px,
                                         reinterpret_cast<const char*>(image.rgb.data()),
                                         static_cast<Py_ssize_t>(image.rgb.size())));
      if (picture.get() == nullptr) throw_pending(driver_);
      PyList_Append(images.get(), picture.get());
    }
    call(engine_, "add", "sOOs", request.id.c_str(), ids.get(), images.get(),
         request.sampling_json.c_str());
  }

  bool has_unfinished() override {
    const Lock lock;
    return PyObject_IsTrue(call(engine_, "has_unfinished").get()) == 1;
  }

  std::vector<VllmAnswer> step() override {
    const PreserveProcess ours;
    const Lock lock;
    const Object finished = call(engine_, "step");
    std::vector<VllmAnswer> answers;
    for (Py_ssize_t i = 0; i < PyList_Size(finished.get()); ++i) {
      PyObject* const answer = PyList_GetItem(finished.get(), i);
      answers.push_back({.id = utf8(PyTuple_GetItem(answer, 0)),
                         .prompt_token_ids = as_ids(PyTuple_GetItem(answer, 1)),
                         .token_ids = as_ids(PyTuple_GetItem(answer, 2)),
                         .token_logprobs = as_doubles(PyTuple_GetItem(answer, 4)),
                         .finish_reason = utf8(PyTuple_GetItem(answer, 3))});
    }
    return answers;
  }

  void abort() override { call_engine("abort"); }

  void sleep(int level) override {
    const PreserveProcess ours;
    const Lock lock;
    call(engine_, "sleep", "i", level);
  }

 private:
  static void start_interpreter(const std::string& executable) {
    if (Py_IsInitialized() != 0) return;
    // keeps the interpreter and its workers from importing from the current directory
    ::setenv("PYTHONSAFEPATH", "1", 1);
    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.install_signal_handlers = 0;  // SIGINT is the program's
    config.parse_argv = 0;
    config.buffered_stdio = 0;
    PyStatus status = PyConfig_SetBytesString(&config, &config.executable, executable.c_str());
    if (PyStatus_Exception(status) == 0)
      status = PyConfig_SetBytesString(&config, &config.program_name, executable.c_str());
    if (PyStatus_Exception(status) == 0) status = Py_InitializeFromConfig(&config);
    PyConfig_Clear(&config);
    if (PyStatus_Exception(status) != 0) {
      throw PythonError(std::string("the interpreter does not start: ") +
                        (status.err_msg != nullptr ? status.err_msg : "no reason given"));
    }
    PyEval_SaveThread();
  }

  void load_driver() {
    if (driver_ != nullptr) return;
    const Object code(Py_CompileString(kDriverSource, "rematch_vllm.py", Py_file_input));
    if (code.get() == nullptr) throw_pending(nullptr);
    PyObject* const module = PyImport_ExecCodeModule("rematch_vllm", code.get());
    if (module == nullptr) throw_pending(nullptr);
    driver_ = module;
    call(driver_, "take_over_output");
  }

  /// Rejects a second libtorch: Python must use the file that the program is linked with.
  static void check_torch(PyObject* facts) {
    const std::string theirs = utf8(PyDict_GetItemString(facts, "torch_lib")) + "/libtorch_cpu.so";
    Dl_info ours{};
    std::error_code ignored;
    if (dladdr(reinterpret_cast<void*>(&at::get_num_threads), &ours) == 0 ||
        ours.dli_fname == nullptr)
      return;
    if (!std::filesystem::equivalent(theirs, ours.dli_fname, ignored)) {
      throw PythonError("another copy of torch: Python's is " + theirs + ", the program's is " +
                        ours.dli_fname);
    }
  }

  void drop_engine() {
    if (engine_ == nullptr) return;
    Py_CLEAR(engine_);
    call(driver_, "stop");
  }

  static std::string log_path(const std::string& description) {
    const std::string key = "\"log_path\":\"";
    const size_t start = description.find(key);
    if (start == std::string::npos) return {};
    const size_t begin = start + key.size();
    const std::string path = description.substr(begin, description.find('"', begin) - begin);
    return path.find('\\') == std::string::npos ? path : std::string();
  }

  template <typename... Arguments>
  Object call(PyObject* owner, const char* name, const char* format = nullptr,
              Arguments... arguments) const {
    Object result(PyObject_CallMethod(owner, name, format, arguments...));
    if (result.get() == nullptr) throw_pending(driver_);
    return result;
  }

  void call_engine(const char* name) {
    const PreserveProcess ours;
    const Lock lock;
    const at::NoGradGuard no_grad;
    call(engine_, name);
  }

  int64_t as_int64(PyObject* number) const {
    const long long value = PyLong_AsLongLong(number);
    if (PyErr_Occurred() != nullptr) throw_pending(driver_);
    return value;
  }

  std::vector<int64_t> as_ids(PyObject* list) const {
    std::vector<int64_t> ids(static_cast<size_t>(PyList_Size(list)));
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = as_int64(PyList_GetItem(list, static_cast<Py_ssize_t>(i)));
    return ids;
  }

  std::vector<double> as_doubles(PyObject* list) const {
    std::vector<double> values(static_cast<size_t>(PyList_Size(list)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = PyFloat_AsDouble(PyList_GetItem(list, static_cast<Py_ssize_t>(i)));
    if (PyErr_Occurred() != nullptr) throw_pending(driver_);
    return values;
  }

  PyObject* driver_ = nullptr;
  PyObject* engine_ = nullptr;
  std::string version_;
  std::string description_;
  int64_t number_ = 0;
  int64_t num_started_ = 0;
};

}  // namespace
}  // namespace rematch

extern "C" __attribute__((visibility("default"))) int rematch_vllm_plugin_abi() {
  return rematch::kVllmPluginAbi;
}

#define REMATCH_STRINGIFY(number) #number
#define REMATCH_TEXT(number) REMATCH_STRINGIFY(number)
extern "C" __attribute__((visibility("default"))) const char* rematch_vllm_plugin_python() {
  return REMATCH_TEXT(PY_MAJOR_VERSION) "." REMATCH_TEXT(PY_MINOR_VERSION);
}

extern "C" __attribute__((visibility("default"))) rematch::VllmPlugin* rematch_vllm_plugin() {
  // Never destroyed: Python is not finalised; its threads end with the process.
  static auto* const plugin = new rematch::Plugin;
  return plugin;
}
