// Plants one fault in one rank: LD_PRELOAD=…/librematch_rank_fault_shim.so with
//
//   PLANT_RANK   which rank (RANK); its first attempt only (TORCHELASTIC_RESTART_COUNT is not above
//   0) PLANT_PHASE  start (its first connection), rollout, parse (of an answer that is no JSON),
//   backward, gather (of shared weights), exchange, update, evaluate, save PLANT_AT     how often
//   the phase is entered until then, from 1 PLANT_FAULT  kill, stop, hang (alive without progress),
//   interrupt, throw, nan (in backward), full (from then on the disk under PLANT_UNDER is full)
//   PLANT_UNDER  the directory of runs
//
// It sees a phase by what the program calls of other libraries in it.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace {

std::atomic<bool> g_is_full{false}, g_has_rolled_out{false}, g_is_evaluating{false};
std::atomic<int> g_num_entered{0};

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_chosen() {
  static const bool chosen = !setting("PLANT_RANK").empty() &&
                             setting("RANK") == setting("PLANT_RANK") &&
                             std::atoi(setting("TORCHELASTIC_RESTART_COUNT").c_str()) == 0;
  return chosen;
}

/// True when the planted fault is a NaN, which the caller makes.
bool enter(const char* phase) {
  static const std::string wanted = setting("PLANT_PHASE"), fault = setting("PLANT_FAULT");
  static const int at = std::max(1, std::atoi(setting("PLANT_AT").c_str()));
  if (!is_chosen() || wanted != phase || ++g_num_entered != at) return false;
  std::fprintf(stderr, "planted: %s in %s\n", fault.c_str(), phase);
  if (fault == "kill") ::kill(::getpid(), SIGKILL);
  if (fault == "stop") ::kill(::getpid(), SIGSTOP);
  while (fault == "hang") ::pause();
  if (fault == "interrupt") ::kill(::getpid(), SIGINT);
  if (fault == "full") g_is_full = true;
  if (fault == "throw") throw std::runtime_error("a planted exception");
  return fault == "nan";
}

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_below(const std::string& path, const std::string& directory) {
  return !directory.empty() && path.rfind(directory, 0) == 0;
}

int opened(const char* name, const char* path, int flags, mode_t mode) {
  const std::string text(path);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  if (!writes && text.find("/val_images/") != std::string::npos) g_is_evaluating = true;
  if (writes && text.find("/.tmp-checkpoint-") != std::string::npos) {
    g_is_evaluating = false;
    enter("save");
  }
  return next<int (*)(const char*, int, ...)>(name)(path, flags, mode);
}

mode_t mode_of(int flags, va_list rest) {
  return (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
}

constexpr const char* kBroadcast =
    "_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_EERKNS_"
    "16BroadcastOptionsE";
constexpr const char* kExchange =
    "_ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_"
    "15AllToAllOptionsE";

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return opened("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  return opened("open64", path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  if (g_is_full && fd > 2) {
    char path[4096];
    const ssize_t length =
        ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
    if (length > 0 &&
        is_below(std::string(path, static_cast<size_t>(length)), setting("PLANT_UNDER"))) {
      errno = ENOSPC;
      return -1;
    }
  }
  return next<ssize_t (*)(int, const void*, size_t)>("write")(fd, data, size);
}

int connect(int fd, const struct sockaddr* address, socklen_t size) {
  enter("start");
  return next<int (*)(int, const struct sockaddr*, socklen_t)>("connect")(fd, address, size);
}
}

// An answer that is no JSON becomes "{", in tokens; nothing else that is encoded after a rollout is
// this text.
extern "C" int pcre2_match_8(const void* code, const unsigned char* text, size_t size, size_t start,
                             uint32_t options, void* data, void* context) {
  if (size == 1 && text[0] == '{' && g_has_rolled_out && !g_is_evaluating) enter("parse");
  using Match = int (*)(const void*, const unsigned char*, size_t, size_t, uint32_t, void*, void*);
  return next<Match>("pcre2_match_8")(code, text, size, start, options, data, context);
}

// A member function: its object is the first argument.
using Counts = std::vector<int64_t>;
using Exchange = c10::intrusive_ptr<c10d::Work> (*)(void*, at::Tensor&, at::Tensor&, Counts&,
                                                    Counts&, const void*);
// clang-format off: it leaves this declaration too wide
c10::intrusive_ptr<c10d::Work> exchange(void* self, at::Tensor& to, at::Tensor& from,
                                        Counts& to_counts, Counts& from_counts,
                                        const void* options) asm(
    "_ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_"
    "15AllToAllOptionsE");
// clang-format on
c10::intrusive_ptr<c10d::Work> exchange(void* self, at::Tensor& to, at::Tensor& from,
                                        Counts& to_counts, Counts& from_counts,
                                        const void* options) {
  enter("exchange");
  return next<Exchange>(kExchange)(self, to, from, to_counts, from_counts, options);
}

// The parts of shared weights go by it, and little else.
using Broadcast = c10::intrusive_ptr<c10d::Work> (*)(void*, std::vector<at::Tensor>&, const void*);
c10::intrusive_ptr<c10d::Work>
broadcast(void* self, std::vector<at::Tensor>& tensors, const void* options) asm(
    "_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_"
    "EERKNS_16BroadcastOptionsE");
c10::intrusive_ptr<c10d::Work> broadcast(void* self, std::vector<at::Tensor>& tensors,
                                         const void* options) {
  enter("gather");
  return next<Broadcast>(kBroadcast)(self, tensors, options);
}

namespace torch::autograd {
void backward(const variable_list& tensors, const variable_list& gradients,
              std::optional<bool> retain, bool create, const variable_list& inputs) {
  const bool is_planning = tensors.front().is_meta();  // of `plan`, before the first step
  if (!is_planning) g_is_evaluating = false;
  variable_list roots = tensors;
  if (!is_planning && enter("backward"))
    roots[0] = at::mul(roots[0], std::numeric_limits<double>::quiet_NaN());
  using Backward = void (*)(const variable_list&, const variable_list&, std::optional<bool>, bool,
                            const variable_list&);
  next<Backward>(
      "_ZN5torch8autograd8backwardERKSt6vectorIN2at6TensorESaIS3_EES7_St8optionalIbEbS7_")(
      roots, gradients, retain, create, inputs);
}
}  // namespace torch::autograd

namespace at::_ops {
// Only cached decoding makes masks with it.
at::Tensor bitwise_or_Tensor::call(const at::Tensor& self, const at::Tensor& other) {
  g_has_rolled_out = true;
  enter(g_is_evaluating ? "evaluate" : "rollout");
  return next<at::Tensor (*)(const at::Tensor&, const at::Tensor&)>(
      "_ZN2at4_ops17bitwise_or_Tensor4callERKNS_6TensorES4_")(self, other);
}

void _fused_adamw_::call(at::TensorList self, at::TensorList grads, at::TensorList averages,
                         at::TensorList squares, at::TensorList maxima, at::TensorList steps,
                         double rate, double beta1, double beta2, double decay, double epsilon,
                         bool amsgrad, bool maximize, const ::std::optional<at::Tensor>& scale,
                         const ::std::optional<at::Tensor>& infinite) {
  enter("update");
  using Step =
      void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
               at::TensorList, double, double, double, double, double, bool, bool,
               const ::std::optional<at::Tensor>&, const ::std::optional<at::Tensor>&);
  next<Step>(
      "_ZN2at4_ops13_fused_adamw_4callEN3c108ArrayRefINS_6TensorEEES5_S5_S5_S5_S5_"
      "dddddbbRKSt8optionalIS4_ES9_")(self, grads, averages, squares, maxima, steps, rate, beta1,
                                      beta2, decay, epsilon, amsgrad, maximize, scale, infinite);
}
}  // namespace at::_ops
