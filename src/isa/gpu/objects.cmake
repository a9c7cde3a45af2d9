# The interpreter objects of GPUs, one an ISA, compiled where the vendor's compiler is found and built into interp_gpu. Without a compiler the
# library says that it has none, and so do its test and plowrt. The target `gpu_objects` builds all that can be built, checks that each carries
# this source's numbers and stays within its budget, and prints a table of every body's registers, spills, memory and size.
option(PLOW_GPU_OBJECTS "Build the interpreter objects of GPUs where their compilers are found" ON)
find_program(PLOW_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(PLOW_NVCC)
  cmake_path(GET PLOW_NVCC PARENT_PATH folder)
  find_program(PLOW_NVLINK nvlink HINTS ${folder} REQUIRED)  # of the same toolkit
endif()
# The back end for gfx950 is in LLVM 20 and later; tried with 22 (Debian: clang-22, lld-22, llvm-22).
find_program(PLOW_AMDGPU_CLANG NAMES clang++-22 clang++-21 clang++-20)
if(PLOW_AMDGPU_CLANG AND NOT DEFINED PLOW_AMDGPU_CLANG_WORKS)
  # Debian's clang finds its linker when that is installed in the same version.
  file(WRITE ${CMAKE_BINARY_DIR}/objects/probe.cc "extern \"C\" __attribute__((amdgpu_kernel)) void probe() {}\n")
  execute_process(COMMAND ${PLOW_AMDGPU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=gfx950 -nogpulib -ffreestanding -x c++
      ${CMAKE_BINARY_DIR}/objects/probe.cc -o ${CMAKE_BINARY_DIR}/objects/probe.hsaco
    RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
  if(result EQUAL 0)
    set(works ON)
  else()
    set(works OFF)
  endif()
  set(PLOW_AMDGPU_CLANG_WORKS ${works} CACHE BOOL "PLOW_AMDGPU_CLANG compiles and links for gfx950")
endif()
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/objects)

function(_plow_say_objects vendor compiler why)
  if(NOT PLOW_GPU_OBJECTS)
    message(STATUS "GPU objects, ${vendor}: skipped, PLOW_GPU_OBJECTS is off")
  elseif(compiler)
    message(STATUS "GPU objects, ${vendor}: ${compiler}")
  else()
    message(STATUS "GPU objects, ${vendor}: skipped, ${why}; plowrt will not run on such a device")
  endif()
endfunction()

# Compiles the object of an ISA into interp_gpu. `name`: as in abi/isas.def; `path`: empty when it is not built.
function(_plow_embed_object name isa path)
  set(PLOW_OBJECT_NAME ${name})
  set(PLOW_OBJECT_ISA ${isa})
  set(PLOW_OBJECT_PATH ${path})
  set(PLOW_OBJECT_EXISTS 0)
  set(embedded ${CMAKE_BINARY_DIR}/embedded/interp_gpu/object_${isa}.cpp)
  if(path)
    set(PLOW_OBJECT_EXISTS 1)
    set_source_files_properties(${embedded} PROPERTIES OBJECT_DEPENDS ${path})
    set_property(GLOBAL APPEND PROPERTY PLOW_OBJECTS ${isa} ${path})
  endif()
  configure_file(${CMAKE_SOURCE_DIR}/src/isa/gpu/object_data.cpp.in ${embedded} @ONLY)
  target_sources(interp_gpu PRIVATE ${embedded})
endfunction()

# Contraction is off, since the bits of a result must not depend on what the compiler fused.
set(PLOW_NVCC_FLAGS -cubin -rdc=true -std=c++20 -O3 --expt-relaxed-constexpr -fmad=false -Xptxas -v -I ${CMAKE_SOURCE_DIR}/src)
# Without tail calls: a body that is called by one saves its caller's registers, 98 of them in attention, where it otherwise need not save any, all of
# its callers being known (LLVM, TargetFrameLowering::isSafeForNoCSROpt).
set(PLOW_AMDGPU_FLAGS --target=amdgcn-amd-amdhsa -nogpulib -ffreestanding -fno-exceptions -fno-rtti -O3 -fno-optimize-sibling-calls -std=c++20 -mcode-object-version=6
  -ffp-contract=off -Wall -Wextra -Werror -I ${CMAKE_SOURCE_DIR}/src)

# The bodies of NVIDIA's objects: of the operators of team_bodies.def that are no products, one of all that are, and what many rows do another way.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/team_bodies.def)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/ops/team_bodies.def lines REGEX "^PLOW_TEAM_(BODY|ATTENTION)\\(")
set(PLOW_TEAM_BODIES product group_product attention_matrices)
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^PLOW_TEAM_[A-Z]+\\([A-Za-z]+, ([a-z_]+)\\).*" "\\1" body "${line}")
  list(APPEND PLOW_TEAM_BODIES ${body})
endforeach()

# One of the cubins that an object is linked from, with what ptxas says of it beside it: of `source`, compiled with the definitions that follow.
function(_plow_nvidia_part path isa number source)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  add_custom_command(OUTPUT ${path} BYPRODUCTS ${path}.log
    COMMAND ${CMAKE_COMMAND} -DLOG=${path}.log -P ${CMAKE_SOURCE_DIR}/cmake/plow_run_logged.cmake --
      ${PLOW_NVCC} ${PLOW_NVCC_FLAGS} -gencode arch=compute_${number},code=${isa} -DPLOW_NVIDIA_ISA=${isa} ${definitions} -MD -MF ${path}.d -o ${path} ${source}
    DEPENDS ${source} ${CMAKE_SOURCE_DIR}/cmake/plow_run_logged.cmake DEPFILE ${path}.d VERBATIM)
endfunction()

# The object of an ISA: the kernel and each body are compiled by themselves (isa/nvidia/body.cuh says why) and linked.
function(_plow_nvidia_object path isa number)
  set(folder ${path}.parts)
  file(MAKE_DIRECTORY ${folder})
  _plow_nvidia_part(${folder}/interpreter.cubin ${isa} ${number} ${CMAKE_SOURCE_DIR}/src/isa/nvidia/interpreter.cu)
  set(parts ${folder}/interpreter.cubin)
  foreach(body IN LISTS PLOW_TEAM_BODIES)
    set(header ops/${body}/team_body.h)
    if(body MATCHES "product$")
      set(header ops/product_team_body.h)
    elseif(body STREQUAL "attention_matrices")
      set(header ops/attention/team_body.h)
    endif()
    _plow_nvidia_part(${folder}/${body}.cubin ${isa} ${number} ${CMAKE_SOURCE_DIR}/src/isa/nvidia/body.cu
      PLOW_BODY_HEADER="${header}" PLOW_BODY=${body}_body PLOW_BODY_TEMPLATE=${body}_team_body)
    list(APPEND parts ${folder}/${body}.cubin)
  endforeach()
  add_custom_command(OUTPUT ${path} BYPRODUCTS ${path}.log
    COMMAND ${CMAKE_COMMAND} -DLOG=${path}.log -P ${CMAKE_SOURCE_DIR}/cmake/plow_run_logged.cmake -- ${PLOW_NVLINK} -arch=${isa} -v ${parts} -o ${path}
    DEPENDS ${parts} VERBATIM)
endfunction()

_plow_say_objects(nvidia "${PLOW_NVCC}" "there is no nvcc")
foreach(names IN ITEMS "Sm90a sm_90a 90a" "Sm120 sm_120 120")
  separate_arguments(names)
  list(POP_FRONT names name isa number)
  set(path)
  if(PLOW_NVCC AND PLOW_GPU_OBJECTS)
    set(path ${CMAKE_BINARY_DIR}/objects/plow_${isa}.cubin)
    _plow_nvidia_object(${path} ${isa} ${number})
  endif()
  _plow_embed_object(${name} ${isa} "${path}")
endforeach()

set(why "there is no clang++ of LLVM 20 or later with the AMDGPU target and its linker")
if(PLOW_AMDGPU_CLANG AND PLOW_AMDGPU_CLANG_WORKS)
  _plow_say_objects(amd "${PLOW_AMDGPU_CLANG}" "")
else()
  _plow_say_objects(amd "" "${why}")
endif()
foreach(names IN ITEMS "Gfx942 gfx942" "Gfx950 gfx950")
  separate_arguments(names)
  list(POP_FRONT names name isa)
  set(path)
  if(PLOW_AMDGPU_CLANG AND PLOW_AMDGPU_CLANG_WORKS AND PLOW_GPU_OBJECTS)
    set(path ${CMAKE_BINARY_DIR}/objects/plow_${isa}.hsaco)
    set(source ${CMAKE_SOURCE_DIR}/src/isa/amd/interpreter.cc)
    # By way of assembly, which says what every body takes.
    add_custom_command(OUTPUT ${path} BYPRODUCTS ${path}.s
      COMMAND ${PLOW_AMDGPU_CLANG} ${PLOW_AMDGPU_FLAGS} -mcpu=${isa} -DPLOW_AMD_ISA=${isa} -MD -MF ${path}.d -MT ${path} -S -o ${path}.s ${source}
      COMMAND ${PLOW_AMDGPU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=${isa} -mcode-object-version=6 -o ${path} ${path}.s
      DEPENDS ${source} DEPFILE ${path}.d VERBATIM)
  endif()
  _plow_embed_object(${name} ${isa} "${path}")
endforeach()

# The guards: a build fails when an object was not compiled from the numbers that the host was, or when a body spills or takes more than its ISA has.
add_executable(check_gpu_object ${CMAKE_SOURCE_DIR}/tools/check_gpu_object.cpp)
target_link_libraries(check_gpu_object PRIVATE interp_gpu plow_warnings)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
get_property(objects GLOBAL PROPERTY PLOW_OBJECTS)
set(checks)
set(files)
set(table_arguments)
while(objects)
  list(POP_FRONT objects isa path)
  list(APPEND checks COMMAND check_gpu_object ${isa} ${path})
  list(APPEND table_arguments ${isa}=${path})
  list(APPEND files ${path})
endwhile()
set(PLOW_OBJECT_TABLE ${CMAKE_SOURCE_DIR}/tools/object_table.py)
if(files)
  set(checked ${CMAKE_BINARY_DIR}/objects/checked)
  add_custom_command(OUTPUT ${checked} ${checks}
    COMMAND Python3::Interpreter ${PLOW_OBJECT_TABLE} --quiet ${table_arguments}
    COMMAND ${CMAKE_COMMAND} -E touch ${checked}
    DEPENDS check_gpu_object ${PLOW_OBJECT_TABLE} ${files} COMMENT "Checking the GPU objects' numbers and budgets" VERBATIM)
  add_custom_target(gpu_objects_checked ALL DEPENDS ${checked})
  add_custom_target(gpu_objects COMMAND Python3::Interpreter ${PLOW_OBJECT_TABLE} ${table_arguments} DEPENDS ${files} VERBATIM)
  add_dependencies(gpu_objects gpu_objects_checked)
endif()

# The drift guard is seen to fail: a copy of the device code with one number changed is compiled and must be refused by that number's name.
function(_plow_drift_test vendor isa carried)
  add_test(NAME drift_guard_${vendor} COMMAND ${CMAKE_COMMAND} -DVENDOR=${vendor} -DISA=${isa} -DSOURCE=${CMAKE_SOURCE_DIR}/src
    -DFOLDER=${CMAKE_BINARY_DIR}/objects/drift_${vendor} -DCHECK=$<TARGET_FILE:check_gpu_object> -DCARRIED=${carried}
    -P ${CMAKE_SOURCE_DIR}/src/isa/gpu/drift_test.cmake -- ${ARGN})
  set_tests_properties(drift_guard_${vendor} PROPERTIES LABELS interp_gpu SKIP_REGULAR_EXPRESSION "skipped: there is no compiler")
endfunction()
set(nvcc)
if(PLOW_NVCC AND PLOW_GPU_OBJECTS)
  set(nvcc ${PLOW_NVCC} -cubin -x cu -std=c++20 --expt-relaxed-constexpr -gencode arch=compute_90a,code=sm_90a -DPLOW_NVIDIA_ISA=sm_90a)
endif()
_plow_drift_test(nvidia sm_90a carried.cuh ${nvcc})
set(clang)
if(PLOW_AMDGPU_CLANG AND PLOW_AMDGPU_CLANG_WORKS AND PLOW_GPU_OBJECTS)
  set(clang ${PLOW_AMDGPU_CLANG} --target=amdgcn-amd-amdhsa -mcpu=gfx942 -nogpulib -ffreestanding -fno-exceptions -fno-rtti -std=c++20 -x c++ -DPLOW_AMD_ISA=gfx942)
endif()
_plow_drift_test(amd gfx942 carried.h ${clang})
