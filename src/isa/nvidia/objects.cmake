# The interpreter objects of NVIDIA GPUs, one an ISA, compiled where nvcc is found and built into interp_nvidia. Without nvcc the library says that it
# has none, and so do its test and plowrt.
option(PLOW_GPU_OBJECTS "Build the interpreter objects of GPUs where their compilers are found" ON)
find_program(PLOW_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
if(PLOW_NVCC AND PLOW_GPU_OBJECTS)
  message(STATUS "GPU objects: ${PLOW_NVCC}")
else()
  message(STATUS "GPU objects: skipped, there is no nvcc or PLOW_GPU_OBJECTS is off; plowrt will run on the CPU only")
endif()

# Contraction is off, since the bits of a result must not depend on what the compiler fused.
set(nvcc_flags -cubin -std=c++20 -O3 --expt-relaxed-constexpr -fmad=false -I ${CMAKE_SOURCE_DIR}/src)
foreach(isa IN ITEMS sm_90a sm_120)
  string(REPLACE "sm_" "" number ${isa})
  set(PLOW_OBJECT_ISA ${isa})
  set(PLOW_OBJECT_PATH)
  set(PLOW_OBJECT_EXISTS 0)
  set(embedded ${CMAKE_BINARY_DIR}/embedded/interp_nvidia/object_${isa}.cpp)
  if(PLOW_NVCC AND PLOW_GPU_OBJECTS)
    set(PLOW_OBJECT_EXISTS 1)
    set(PLOW_OBJECT_PATH ${CMAKE_BINARY_DIR}/objects/plow_${isa}.cubin)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/objects)
    add_custom_command(OUTPUT ${PLOW_OBJECT_PATH}
      COMMAND ${PLOW_NVCC} ${nvcc_flags} -gencode arch=compute_${number},code=${isa} -DPLOW_NVIDIA_ISA=${isa} -MD -MF ${PLOW_OBJECT_PATH}.d
        -o ${PLOW_OBJECT_PATH} ${CMAKE_SOURCE_DIR}/src/isa/nvidia/interpreter.cu
      DEPENDS ${CMAKE_SOURCE_DIR}/src/isa/nvidia/interpreter.cu DEPFILE ${PLOW_OBJECT_PATH}.d VERBATIM)
    set_source_files_properties(${embedded} PROPERTIES OBJECT_DEPENDS ${PLOW_OBJECT_PATH})
  endif()
  configure_file(${CMAKE_SOURCE_DIR}/src/isa/nvidia/object_data.cpp.in ${embedded} @ONLY)
  target_sources(interp_nvidia PRIVATE ${embedded})
endforeach()
