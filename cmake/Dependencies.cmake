# One imported target for each library we use. All come from Debian packages, libtorch from the
# wheel in .venv.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(pugixml REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(FREETYPE REQUIRED IMPORTED_TARGET freetype2)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(JEMALLOC REQUIRED IMPORTED_TARGET jemalloc)
# The font of the pictures' labels becomes part of the program (src/tools/draw/font.cc).
find_file(REMATCH_FONT DejaVuSans.ttf PATHS /usr/share/fonts /usr/local/share/fonts
  PATH_SUFFIXES truetype/dejavu dejavu dejavu-sans-fonts TTF)
if(NOT REMATCH_FONT)
  message(FATAL_ERROR
    "DejaVuSans.ttf was not found: install fonts-dejavu-core (scripts/setup does), or pass "
    "-DREMATCH_FONT=/path/to/DejaVuSans.ttf")
endif()
find_package(CLI11 REQUIRED)
if(REMATCH_TESTS)
  find_package(GTest REQUIRED)
  find_path(RAPIDCHECK_INCLUDE rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
endif()
if(REMATCH_TORCH)
  find_package(Libtorch REQUIRED)
endif()
