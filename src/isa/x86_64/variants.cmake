# Each variant_*.cpp of the interpreter has flags of its own; nothing else is compiled with them. Contraction is off, since the bits of a
# result must not depend on how a loop was unrolled. GCC 12 warns about its own AVX-512 headers.
set(flags_common -O3 -ffp-contract=off -fno-math-errno -Wno-uninitialized)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND flags_common -Wno-maybe-uninitialized)
endif()
set(flags_avx2 -mavx2 -mfma -mf16c)
set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
set(flags_avx512_bf16 ${flags_avx512} -mavx512bf16 -mavx512vnni)
foreach(variant IN ITEMS avx2 avx512 avx512_bf16)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/isa/x86_64/variant_${variant}.cpp
    TARGET_DIRECTORY interp_x86_64 PROPERTIES COMPILE_OPTIONS "${flags_common};${flags_${variant}}")
endforeach()

# The primitives' headers, when check_headers compiles them alone.
foreach(prims IN ITEMS avx2 avx512_bf16)
  string(REPLACE "_bf16" "" header prims_${prims})  # one header has both AVX-512 levels
  set_source_files_properties(${CMAKE_BINARY_DIR}/headers_alone/interp_x86_64/${header}_h.cpp
    TARGET_DIRECTORY interp_x86_64_headers
    PROPERTIES COMPILE_OPTIONS "${flags_${prims}};-Wno-uninitialized")
endforeach()

# What interp/device.h promises: no symbol of a variant can be merged with another's, and the AVX2 one needs nothing more.
add_test(NAME interp_x86_64_linkage
  COMMAND ${CMAKE_COMMAND} "-DOBJECTS=$<JOIN:$<FILTER:$<TARGET_OBJECTS:interp_x86_64>,INCLUDE,variant_>,|>"
    -DNM=${CMAKE_NM} -DOBJDUMP=${CMAKE_OBJDUMP} -P ${CMAKE_SOURCE_DIR}/src/isa/x86_64/linkage_test.cmake)
set_tests_properties(interp_x86_64_linkage PROPERTIES LABELS interp_x86_64)
