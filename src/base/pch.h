#pragma once
// The precompiled header of the torch-free folders: what most files include. Not nlohmann/json.hpp:
// its templates would be instantiated again at the end of every file. Every file still includes
// what it uses, because clang-tidy and the fuzzers build without this header.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
