# Language level, build types, warnings, and the tools that make builds fast.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_DEV "-O1 -g1" CACHE STRING "" FORCE)
# For compiling and testing quickly: two thirds of the time of Dev. The kernels are optimised all
# the same (src/model/kernels/CMakeLists.txt).
set(CMAKE_CXX_FLAGS_LIGHT "-Og" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_LIGHT "-Og" CACHE STRING "" FORCE)
# -O2 and no debug information: half the build time of RelWithDebInfo, the hot loops live in
# libtorch.
set(CMAKE_CXX_FLAGS_RELEASE "-O2" CACHE STRING "" FORCE)

# Numbers must not depend on the compiler's mood: no contraction of a*b+c outside the kernels that
# ask for it.
add_compile_options(-ffp-contract=off)

find_program(REMATCH_CCACHE ccache)
if(REMATCH_CCACHE)
  # Relative to the checkout, so that another clone finds what this one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_NOHASHDIR=1
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${REMATCH_CCACHE})
endif()

if(REMATCH_SANITIZE)
  add_compile_definitions(REMATCH_SANITIZED)  # compilers disagree on a macro of their own
endif()
if(REMATCH_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(REMATCH_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(REMATCH_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(REMATCH_SANITIZE)
  message(FATAL_ERROR
    "REMATCH_SANITIZE is \"${REMATCH_SANITIZE}\": give address, thread, or nothing")
endif()

# Warnings are errors for our code only; third-party headers come in as SYSTEM.
add_library(rematch_warnings INTERFACE)
target_compile_options(rematch_warnings INTERFACE -Wall -Wextra -Werror
  -Wno-missing-field-initializers
  # GCC 12 sees overlaps in std::string that are not there (PR 105329)
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # warns of other things than GCC, the compiler of releases
  $<$<CXX_COMPILER_ID:Clang>:-Wno-error -Wno-unknown-warning-option>)
