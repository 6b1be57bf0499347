#include "support/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rematch::test {

namespace {

// A copy of what tests read, on a machine without the checkout (scripts/gpu-kit).
const char* moved_root() { return std::getenv("REMATCH_TEST_ROOT"); }

}  // namespace

std::string source_path(const std::string& relative) {
  return std::string(moved_root() != nullptr ? moved_root() : REMATCH_SOURCE_DIR) + "/" + relative;
}
std::string binary_path(const std::string& relative) {
  return (moved_root() != nullptr ? std::string(moved_root()) + "/build/release"
                                  : std::string(REMATCH_BINARY_DIR)) +
         "/" + relative;
}

TempDir::TempDir() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rematch-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string TempDir::write(const std::string& name, const std::string& content) const {
  const std::filesystem::path target = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(target.parent_path());
  std::ofstream(target, std::ios::binary) << content;
  return target.string();
}

}  // namespace rematch::test
