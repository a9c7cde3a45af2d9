# rule.cpp includes the names of the rules that proofs/rules/Sound.v has a theorem of. The build of the proofs checks that each of
# them is proved of the rule's text as it stands (EveryRule.v, made from the same names).
set(plow_rule_proofs ${CMAKE_SOURCE_DIR}/proofs/rules/Sound.v)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plow_rule_proofs})
file(STRINGS ${plow_rule_proofs} plow_theorems REGEX "^Theorem [a-z0-9_]+ : says_[a-z0-9_]+ A\\.")
set(plow_proved_rules "")
foreach(theorem IN LISTS plow_theorems)
  string(REGEX REPLACE "^Theorem ([a-z0-9_]+) : .*" "    \"\\1\",\n" name "${theorem}")
  string(APPEND plow_proved_rules "${name}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/rewrite/rewrite/proved_rules.inc CONTENT "${plow_proved_rules}")
target_include_directories(rewrite PRIVATE ${CMAKE_BINARY_DIR}/generated/rewrite)
