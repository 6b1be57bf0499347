# Libtorch::Libtorch from a torch wheel.
#
# Not the wheel's own find_package(Torch): with a CUDA wheel that demands a full CUDA toolkit (nvcc)
# on the user's machine, while all we do is link the wheel's shared libraries.
# Look-up: -DREMATCH_TORCH_DIR=…/site-packages/torch, else .venv of this checkout, else the python3
# on PATH.
set(REMATCH_TORCH_DIR ""
  CACHE PATH "directory of the installed torch package (the one that holds lib/ and include/)")
if(NOT REMATCH_TORCH_DIR)
  file(GLOB _venv_torch ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(_venv_torch)
    list(GET _venv_torch 0 REMATCH_TORCH_DIR)
  else()
    string(CONCAT _print_torch "from importlib.util import find_spec; s = find_spec('torch')\n"
      "print(s.submodule_search_locations[0] if s else '')")
    execute_process(COMMAND python3 -c "${_print_torch}"
                    OUTPUT_VARIABLE REMATCH_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_library(LIBTORCH_LIBRARY torch PATHS ${REMATCH_TORCH_DIR}/lib NO_DEFAULT_PATH)
find_package_handle_standard_args(Libtorch REQUIRED_VARS LIBTORCH_LIBRARY
  REASON_FAILURE_MESSAGE
  "no torch wheel found: run scripts/setup, or pass -DREMATCH_TORCH_DIR=…/site-packages/torch")
file(STRINGS ${REMATCH_TORCH_DIR}/version.py _torch_version REGEX "^__version__")
string(REGEX REPLACE ".*'([^']+)'.*" "\\1" Libtorch_VERSION "${_torch_version}")
message(STATUS "libtorch ${Libtorch_VERSION} in ${REMATCH_TORCH_DIR}")

add_library(Libtorch::Libtorch INTERFACE IMPORTED)
# The wheel brings headers of another fmt (without its library) that would shadow the system's,
# which all our code links.
find_path(_fmt_include fmt/core.h PATHS /usr/include NO_DEFAULT_PATH)
if(_fmt_include)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fmt_first)
  file(CREATE_LINK ${_fmt_include}/fmt ${CMAKE_BINARY_DIR}/fmt_first/fmt SYMBOLIC)
  target_include_directories(Libtorch::Libtorch SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/fmt_first)
endif()
target_include_directories(Libtorch::Libtorch SYSTEM INTERFACE ${REMATCH_TORCH_DIR}/include
  ${REMATCH_TORCH_DIR}/include/torch/csrc/api/include)
set(_torch_libs torch torch_cpu c10)
if(EXISTS ${REMATCH_TORCH_DIR}/lib/libtorch_cuda.so)
  list(APPEND _torch_libs torch_cuda c10_cuda)
  target_compile_definitions(Libtorch::Libtorch INTERFACE REMATCH_TORCH_HAS_CUDA=1)
endif()
target_link_directories(Libtorch::Libtorch INTERFACE ${REMATCH_TORCH_DIR}/lib)
# --no-as-needed: the CUDA backend registers itself from a library that is linked but never
# referenced; libtorch.so needs it where the wheel has it. libstdc++ comes first: the wheels export
# parts of a static one (std::filesystem), and those of 2.11.0 for CUDA crash. One argument, because
# CMake moves repeated ones apart.
list(TRANSFORM _torch_libs PREPEND "-l")
list(JOIN _torch_libs "," _torch_libs)
target_link_libraries(Libtorch::Libtorch
  INTERFACE -Wl,--push-state,--no-as-needed,-lstdc++,${_torch_libs},--pop-state Threads::Threads)
# For the build tree only: the installed program finds torch next to it (Wheel.cmake).
set(CMAKE_BUILD_RPATH ${REMATCH_TORCH_DIR}/lib)
target_compile_definitions(Libtorch::Libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1
  REMATCH_TORCH_VERSION="${Libtorch_VERSION}")
