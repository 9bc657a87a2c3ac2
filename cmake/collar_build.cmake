# Compiler settings, dependencies and the two helpers the folders use: collar_floor() and collar_tests().

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

find_program(COLLAR_CCACHE ccache)
if(COLLAR_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${COLLAR_CCACHE})
endif()

# Results are defined by the source text: no contraction of a*b+c behind its back (std::fma says it
# where it is meant), and no path of the build tree in the program.
add_library(collar_flags INTERFACE)
target_compile_options(collar_flags INTERFACE
  -ffp-contract=off -fno-math-errno
  $<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual
  $<$<BOOL:${COLLAR_WERROR}>:-Werror>)
target_include_directories(collar_flags INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
if(COLLAR_SANITIZE)
  target_compile_options(collar_flags INTERFACE
    -fsanitize=${COLLAR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1
    -Wno-maybe-uninitialized)  # GCC's own documentation: instrumented code gives false alarms
  target_link_options(collar_flags INTERFACE -fsanitize=${COLLAR_SANITIZE})
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(JPEG REQUIRED)
find_package(CLI11 REQUIRED)
find_path(COLLAR_STB_INCLUDE stb/stb_image.h REQUIRED)

set(COLLAR_OPENMP_STATE "off: COLLAR_OPENMP=OFF")
if(COLLAR_OPENMP)
  find_package(OpenMP COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    set(COLLAR_OPENMP_STATE "on")
  else()
    set(COLLAR_OPENMP_STATE "off: the compiler offers no OpenMP")
  endif()
endif()

set(COLLAR_HAVE_ONEDNN OFF)
set(COLLAR_ONEDNN_STATE "off: COLLAR_ONEDNN=OFF (reference convolutions, slow)")
if(NOT COLLAR_ONEDNN STREQUAL "OFF")
  find_package(dnnl QUIET)
  set(COLLAR_ONEDNN_MISSING "libdnnl-dev was not found")
  if(dnnl_FOUND AND NOT dnnl_VERSION VERSION_LESS 3)
    set(dnnl_FOUND OFF)
    set(COLLAR_ONEDNN_MISSING "oneDNN ${dnnl_VERSION} was found, and only version 2 will do")
  endif()
  if(dnnl_FOUND)
    set(COLLAR_HAVE_ONEDNN ON)
    set(COLLAR_ONEDNN_STATE "on: ${dnnl_VERSION}")
  elseif(COLLAR_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "COLLAR_ONEDNN=ON, but ${COLLAR_ONEDNN_MISSING}: install libdnnl-dev or set dnnl_DIR")
  else()
    set(COLLAR_ONEDNN_STATE "off: ${COLLAR_ONEDNN_MISSING} (reference convolutions, slow)")
  endif()
endif()

# The CUDA backend has its place behind kernels/runtime; until it is built there, ON is an error.
set(COLLAR_CUDA_STATE "off: this version has no CUDA backend yet")
if(COLLAR_CUDA STREQUAL "ON")
  message(FATAL_ERROR "COLLAR_CUDA=ON, but this version has no CUDA backend yet: set COLLAR_CUDA=OFF")
endif()

# collar_floor(NAME [DEPENDS libs...] [SOURCES files...]): the library collar_NAME of one floor, made of
# every .cpp below the calling folder unless SOURCES lists them.
function(collar_floor name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;SOURCES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  add_library(collar_${name} STATIC ${ARG_SOURCES})
  add_library(collar::${name} ALIAS collar_${name})
  set_target_properties(collar_${name} PROPERTIES EXPORT_NAME ${name})
  target_link_libraries(collar_${name} PUBLIC ${ARG_DEPENDS} fmt::fmt Threads::Threads
                                       PRIVATE $<BUILD_INTERFACE:collar_flags>)
  target_include_directories(collar_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                            $<INSTALL_INTERFACE:include/collar>)
  target_compile_features(collar_${name} PUBLIC cxx_std_20)
  set_property(GLOBAL APPEND PROPERTY COLLAR_FLOORS collar_${name})
endfunction()

# collar_tests(NAME DEPENDS libs...): one Catch2 program of every *_test.cpp below the calling folder;
# each TEST_CASE is a test of ctest. A case that prints COLLAR_SKIPPED is counted as skipped.
function(collar_tests name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} collar_test_support collar_flags)
  catch_discover_tests(test_${name} TEST_PREFIX "${name}: " DISCOVERY_MODE PRE_TEST
    PROPERTIES SKIP_REGULAR_EXPRESSION "COLLAR_SKIPPED" LABELS ${name})
endfunction()

function(collar_feature_summary)
  message(STATUS "collar ${PROJECT_VERSION}: build type ${CMAKE_BUILD_TYPE}")
  message(STATUS "  OpenMP  ${COLLAR_OPENMP_STATE}")
  message(STATUS "  oneDNN  ${COLLAR_ONEDNN_STATE}")
  message(STATUS "  CUDA    ${COLLAR_CUDA_STATE}")
endfunction()
