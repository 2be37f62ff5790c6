# Installs what the program says of itself: completions of shells, and man pages of its help texts.
# Run by `cmake --install` with program, made (a folder to write to), help2man, mandir, datadir.
file(MAKE_DIRECTORY ${made})
get_filename_component(data ${datadir} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
get_filename_component(man ${mandir} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})

function(write_output file)
  execute_process(COMMAND ${ARGN} OUTPUT_FILE ${file} ERROR_VARIABLE problem RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${file} cannot be made: ${problem}")
  endif()
endfunction()

write_output(${made}/perdura ${program} completion bash)
file(INSTALL ${made}/perdura DESTINATION ${data}/bash-completion/completions)
write_output(${made}/perdura.fish ${program} completion fish)
file(INSTALL ${made}/perdura.fish DESTINATION ${data}/fish/vendor_completions.d)

if(NOT help2man)
  message(STATUS "Man pages are left out: help2man was not found when this was configured")
  return()
endif()
get_filename_component(folder ${program} DIRECTORY)
set(ENV{PATH} "${folder}:$ENV{PATH}")
execute_process(COMMAND perdura --help OUTPUT_VARIABLE help)
string(REGEX REPLACE ".*\nSubcommands:\n" "" commands "${help}")
string(REGEX MATCHALL "\n?  [a-z]+ " commands "${commands}")
list(TRANSFORM commands STRIP)
execute_process(COMMAND perdura --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^perdura " "" version "${version}")
set(pages)
foreach(command "" ${commands})
  # The first line says what it is; a semicolon would end an argument.
  execute_process(COMMAND perdura ${command} --help OUTPUT_VARIABLE help)
  string(REGEX REPLACE "[;\n].*" "" name "${help}")
  string(STRIP "perdura ${command}" call)
  string(REPLACE " " "-" page ${call})
  # A page is named after what has the version.
  write_output(${made}/${page}.1
    ${help2man} --no-info "--version-string=${page} ${version}" --name=${name} ${call})
  list(APPEND pages ${made}/${page}.1)
endforeach()
file(INSTALL ${pages} DESTINATION ${man}/man1)
