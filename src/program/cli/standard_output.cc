#include "program/cli/standard_output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <streambuf>

#include "base/error.h"

namespace rematch {
namespace {

/// Descriptor 1 with a buffer; keeps errno of the first write that failed, which a std::filebuf
/// does not.
class WatchedOutput : public std::streambuf {
 public:
  WatchedOutput() { reset(); }
  /// errno of the first failure; 0 = everything was written.
  int error() const { return error_; }

 protected:
  int overflow(int next) override {
    if (sync() != 0) return traits_type::eof();
    if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
    *pptr() = traits_type::to_char_type(next);
    pbump(1);
    return next;
  }

  int sync() override {
    const char* from = pbase();
    while (error_ == 0 && from < pptr()) {
      const ssize_t count = ::write(STDOUT_FILENO, from, static_cast<size_t>(pptr() - from));
      if (count >= 0) {
        from += count;
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
    reset();
    return error_ == 0 ? 0 : -1;
  }

 private:
  void reset() { setp(buffer_.data(), buffer_.data() + buffer_.size()); }

  std::array<char, 1 << 16> buffer_{};
  int error_ = 0;
};

WatchedOutput& output() {
  // never destroyed: std::cout is flushed after the destructors of statics
  static auto* const kept = new WatchedOutput;
  return *kept;
}

}  // namespace

void watch_standard_output() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is `fd`. For reading only: writing to it fails.
    [[maybe_unused]] const int opened =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
  std::cout.rdbuf(&output());
}

void survive_closed_pipe() { std::signal(SIGPIPE, SIG_IGN); }

void reserve_standard_output(const std::string& out) {
  struct stat named{}, standard{};
  const bool exist = ::stat(out.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &standard) == 0;
  if (exist && named.st_dev == standard.st_dev && named.st_ino == standard.st_ino)
    std::cout.rdbuf(std::cerr.rdbuf());
}

int finish_standard_output(int exit_code) {
  std::cout.flush();
  if (output().error() == 0) return exit_code;
  std::cerr << format_problem(
      {.error = "cannot write the output",
       .where = "standard output",
       .what = std::strerror(output().error()),
       .fix = output().error() == EPIPE
                  ? "keep the program that reads it running, or write into a file"
                  : "free disk space, or write to another place"});
  return exit_code == 0 ? rematch::exit_code(ErrorKind::kEnvironment) : exit_code;
}

}  // namespace rematch
