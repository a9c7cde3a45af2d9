# Each variant_*.cpp of the interpreter has flags of its own; nothing else is compiled with them. Contraction is off, since the bits of a
# result must not depend on how a loop was unrolled. GCC 12 warns about its own AVX-512 headers.
set(common "-O3;-ffp-contract=off;-fno-math-errno;-Wno-uninitialized;-Wno-maybe-uninitialized")
set(avx2 -mavx2 -mfma -mf16c)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=512)
foreach(variant IN ITEMS avx2 avx512 avx512_bf16)
  set(flags ${common} ${avx512})
  if(variant STREQUAL avx2)
    set(flags ${common} ${avx2})
  elseif(variant STREQUAL avx512_bf16)
    list(APPEND flags -mavx512bf16)
  endif()
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/isa/x86_64/variant_${variant}.cpp
    TARGET_DIRECTORY interp_x86_64 PROPERTIES COMPILE_OPTIONS "${flags}")
endforeach()
