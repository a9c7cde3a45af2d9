# Warnings, sanitizers and the compiler cache: everything that holds for all targets alike.

set(PLOW_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them (address,undefined or thread)")
option(PLOW_FUZZ "Build the libFuzzer targets (needs clang)" OFF)
option(PLOW_WERROR "Treat warnings as errors" ON)

find_program(PLOW_CCACHE ccache)
if(PLOW_CCACHE)
  # With paths relative to this source, so that a clone in another folder finds what one before it compiled.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${PLOW_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# One interface target carries the flags, so a target that must differ (the intrinsics headers of
# GCC 12 warn about themselves) can leave it out.
add_library(plow_warnings INTERFACE)
target_compile_options(plow_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
  -Wnon-virtual-dtor -Woverloaded-virtual)
# GCC 12 sees overlaps that are not there in std::string's operator+ (its bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(plow_warnings INTERFACE -Wno-restrict)
endif()
if(PLOW_WERROR)
  target_compile_options(plow_warnings INTERFACE -Werror)
endif()

if(PLOW_SANITIZE)
  add_compile_options(-fsanitize=${PLOW_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLOW_SANITIZE})
  if(PLOW_SANITIZE MATCHES "thread")
    # GCC 12 says that TSan does not model std::atomic_thread_fence; the protocol uses none.
    add_compile_options(-Wno-tsan)
  endif()
endif()
if(PLOW_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Tests are compiled for the compiler's time, not theirs: what they run is the libraries' code.
add_library(plow_test_options INTERFACE)
target_compile_options(plow_test_options INTERFACE -O1)

# Of a test that reads files: where its sources name PLOW_SOURCE_DIR or PLOW_BINARY_DIR, what these are. The others are
# the same in every folder, for the compiler cache too.
function(plow_test_folders)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} uses REGEX "PLOW_(SOURCE|BINARY)_DIR" LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS PLOW_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
        PLOW_BINARY_DIR="${CMAKE_BINARY_DIR}")
    endif()
  endforeach()
endfunction()
