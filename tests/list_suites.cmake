# Writes the CTest tests of a GoogleTest program into FILE (perdura_discover_tests):
#
#   cmake -DPROGRAM=... -DFILE=... -DLABEL=... -DEACH=REGEX -DPOLLING=REGEX -DLONG=REGEX -DSOAK=REGEX
#     -P list_suites.cmake
#
# Each suite is one test, LABEL/SUITE: programs may have suites of the same name. Its tests that POLLING matches are
# another one, LABEL/SUITE.Polling, and so are those that LONG matches, LABEL/SUITE.Long. Each test that EACH matches is
# separate; if SOAK also matches it, it has the label `soak`, too.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " *#[^\n]*" "" listed "${listed}")  # types and values of parameters
string(REGEX MATCHALL "[^\n]+" lines "${listed}")

# `tests` has the names of the tests, and filter_NAME the GoogleTest filter of each.
set(tests "")
foreach(line ${lines})
  if(line MATCHES "^([^ ]+)\\.$")
    set(suite ${CMAKE_MATCH_1})
  elseif(line MATCHES "^  (.+)$")
    set(case ${suite}.${CMAKE_MATCH_1})
    set(label_of_soak "")
    set(is_long FALSE)
    if(LONG AND case MATCHES "${LONG}")
      set(is_long TRUE)
    endif()
    if(EACH AND case MATCHES "${EACH}")
      set(test ${LABEL}/${case})
      set(properties_${test} "COST 50")
      if(SOAK AND case MATCHES "${SOAK}")
        set(label_of_soak ";soak")
      endif()
    elseif(POLLING AND case MATCHES "${POLLING}")
      set(test ${LABEL}/${suite}.Polling)
    elseif(is_long)
      set(test ${LABEL}/${suite}.Long)
    else()
      set(test ${LABEL}/${suite})
    endif()
    if(NOT DEFINED filter_${test})
      list(APPEND tests ${test})
      set(filter_${test} ${case})
      set(labels_${test} ${LABEL})
    else()
      string(APPEND filter_${test} ":${case}")
    endif()
    if(POLLING AND case MATCHES "${POLLING}")
      # On two cores these are all places of `ctest -j`.
      set(properties_${test} "PROCESSORS 3 COST 100")
    endif()
    if(is_long)
      set(labels_${test} "${LABEL};long${label_of_soak}")
    endif()
  endif()
endforeach()

# A test counts as skipped if everything that it runs is skipped.
set(skipped "PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\][^\n]*\n)+$")
set(text "")
foreach(test ${tests})
  string(APPEND text "add_test([==[${test}]==] [==[${PROGRAM}]==] [==[--gtest_filter=${filter_${test}}]==])
set_tests_properties([==[${test}]==] PROPERTIES LABELS [==[${labels_${test}}]==] ${properties_${test}}
  SKIP_REGULAR_EXPRESSION [==[${skipped}]==])\n")
endforeach()
file(WRITE ${FILE} "${text}")
