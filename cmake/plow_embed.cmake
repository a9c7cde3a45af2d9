# plow_embed(TARGET file...): the files' text as constants of namespace plow, compiled into TARGET. page.html becomes kPageHtml, to be
# declared where it is used: `extern const std::string_view kPageHtml;`. The files are relative to the source folder of the project.

function(plow_embed target)
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    set(output ${CMAKE_BINARY_DIR}/embedded/${target}/${name}.cpp)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${CMAKE_SOURCE_DIR}/${file} -D OUTPUT=${output}
        -P ${CMAKE_SOURCE_DIR}/cmake/plow_embed_file.cmake
      DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_SOURCE_DIR}/cmake/plow_embed_file.cmake VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endforeach()
endfunction()
