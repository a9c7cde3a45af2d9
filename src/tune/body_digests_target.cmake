# body_digest.cpp includes what body_digests.cmake writes, anew when a body or what it may include has changed.
file(GLOB plow_body_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/ops/*.h ${CMAKE_SOURCE_DIR}/src/ops/*/*.h
  ${CMAKE_SOURCE_DIR}/src/interp/*.h ${CMAKE_SOURCE_DIR}/src/isa/x86_64/*.h ${CMAKE_SOURCE_DIR}/src/abi/*)
set(plow_body_digests ${CMAKE_BINARY_DIR}/generated/tune/tune/body_digests.inc)
add_custom_command(OUTPUT ${plow_body_digests}
  COMMAND ${CMAKE_COMMAND} -DSRC=${CMAKE_SOURCE_DIR}/src -DOUT=${plow_body_digests}
    -P ${CMAKE_SOURCE_DIR}/src/tune/body_digests.cmake
  DEPENDS ${plow_body_sources} ${CMAKE_SOURCE_DIR}/src/isa/x86_64/variants.cmake
    ${CMAKE_SOURCE_DIR}/src/tune/body_digests.cmake
  COMMENT "Digests of the bodies")
target_sources(tune PRIVATE ${plow_body_digests})
target_include_directories(tune PRIVATE ${CMAKE_BINARY_DIR}/generated/tune)
