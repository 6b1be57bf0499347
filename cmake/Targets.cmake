# rematch_library(NAME LINK … SOURCES … [TORCH] [NO_PCH] [EXTERNAL …])
#     one static library for a folder of src/
# rematch_embed(TARGET FILE)
#     #include "FILE.inc" gives a text file as C++ string literals
# rematch_test_support(NAME LINK … SOURCES … [TORCH])
#     what several test programs share, compiled once
# rematch_test(NAME LINK … SOURCES … [LABELS …] [TORCH])
#     one gtest binary; every case becomes a ctest case, but quick tests with torch share a process:
#     loading torch takes .2 s, longer than most of them
#
# LINK names other rematch libraries; which edges are legal is the table in dev/check_layers.py (a
# ctest).

# Batches of sources compiled as one: a file with torch or gtest spends three of four seconds on
# what their headers leave to instantiate.
function(rematch_compile_in_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REMATCH_BATCHES}
    UNITY_BUILD_BATCH_SIZE 8)
  if(REMATCH_BATCHES)  # GCC takes the sources of a batch for headers
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

function(rematch_library name)
  cmake_parse_arguments(A "TORCH;NO_PCH" "" "SOURCES;LINK;EXTERNAL" ${ARGN})
  if(A_TORCH AND NOT REMATCH_TORCH)
    return()
  endif()
  add_library(rematch_${name} STATIC ${A_SOURCES})
  target_include_directories(rematch_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  list(TRANSFORM A_LINK PREPEND rematch_)
  target_link_libraries(rematch_${name} PUBLIC ${A_LINK} PRIVATE rematch_warnings fmt::fmt
    nlohmann_json::nlohmann_json ${A_EXTERNAL})
  if(A_TORCH)
    target_link_libraries(rematch_${name} PUBLIC Libtorch::Libtorch)
    rematch_use_pch(rematch_${name} rematch_torch_pch)
    rematch_compile_in_batches(rematch_${name})
  elseif(NOT A_NO_PCH)
    rematch_use_pch(rematch_${name} rematch_pch)
  endif()
endfunction()

function(rematch_embed target file)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  cmake_path(GET source FILENAME name)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  add_custom_command(OUTPUT ${generated}/${name}.inc
    COMMAND ${CMAKE_COMMAND} -DINPUT=${source} -DOUTPUT=${generated}/${name}.inc
    -P ${CMAKE_SOURCE_DIR}/cmake/QuoteText.cmake
    DEPENDS ${source} ${CMAKE_SOURCE_DIR}/cmake/QuoteText.cmake)
  target_sources(${target} PRIVATE ${generated}/${name}.inc)
  target_include_directories(${target} PRIVATE ${generated})
endfunction()

# Precompiled headers are shared: rematch_torch_pch (src/model/nn/torch_pch.h; 8 s a file become 2),
# rematch_pch (src/base/pch.h) and rematch_test_pch (tests/support/pch.h) for what needs no torch.
function(rematch_use_pch target pch)
  if(TARGET ${pch})
    target_precompile_headers(${target} REUSE_FROM ${pch})
    # Executables would be compiled with -fPIE, which the header's -fPIC does not match.
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
endfunction()

# What test programs and their support have in common. Their own code need not be fast, only quick
# to compile.
function(rematch_test_target target with_torch)
  target_link_libraries(${target} PRIVATE rematch_test_main rematch_warnings fmt::fmt
    nlohmann_json::nlohmann_json)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  rematch_compile_in_batches(${target})
  if(with_torch)
    target_link_libraries(${target} PRIVATE Libtorch::Libtorch)
    rematch_use_pch(${target} rematch_torch_pch)
  else()
    rematch_use_pch(${target} rematch_test_pch)
  endif()
endfunction()

function(rematch_test_support name)
  cmake_parse_arguments(A "TORCH" "" "SOURCES;LINK" ${ARGN})
  if(A_TORCH AND NOT REMATCH_TORCH)
    return()
  endif()
  add_library(rematch_${name} STATIC ${A_SOURCES})
  list(TRANSFORM A_LINK PREPEND rematch_)
  target_link_libraries(rematch_${name} PUBLIC ${A_LINK})
  rematch_test_target(rematch_${name} ${A_TORCH})
endfunction()

function(rematch_test name)
  cmake_parse_arguments(A "TORCH" "TIMEOUT" "SOURCES;LINK;EXTERNAL;LABELS" ${ARGN})
  if(A_TORCH AND NOT REMATCH_TORCH)
    return()
  endif()
  add_executable(${name} ${A_SOURCES})
  list(TRANSFORM A_LINK PREPEND rematch_)
  target_link_libraries(${name} PRIVATE ${A_LINK} ${A_EXTERNAL})
  rematch_test_target(${name} ${A_TORCH})
  if(NOT A_LABELS)
    set(A_LABELS quick)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)  # a backstop: most take under a second
    if(REMATCH_SANITIZE)
      set(A_TIMEOUT 600)  # instrumented code is many times slower
    endif()
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(A_TORCH AND A_LABELS STREQUAL "quick")
    # scripts/count_tests.py counts the cases of this file in place of the program.
    add_test(NAME ${name} COMMAND ${name}
      --gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${name}.cases.xml
      WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES LABELS quick TIMEOUT 600 COST 10)  # started first
    return()
  endif()
  gtest_discover_tests(${name} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()
if(REMATCH_TESTS)
  include(GoogleTest)
endif()
