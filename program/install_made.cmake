# Installs files that the program generates from its own definitions: shell completions, and man
# pages made from its help texts. Run by `cmake --install` with program, source (of the project),
# made (a folder to write to), help2man, mandir, datadir.
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
execute_process(COMMAND perdura --version OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "^perdura " "" version "${version}")

# The commands in the documents and the README, one per line.
file(GLOB documents ${source}/docs/*.md ${source}/docs/systems/*.md)
set(shown "")
foreach(document ${source}/README.md ${documents})
  file(STRINGS ${document} lines REGEX "^perdura [a-z]")
  list(APPEND shown ${lines})
endforeach()

# Writes the text that help2man adds to the page of a command: its first examples, and the ending.
function(write_sections file call)
  set(text "")
  set(examples 0)
  foreach(line IN LISTS shown)
    string(FIND "${line} " "${call} " at)
    if(at EQUAL 0 AND examples LESS 4 AND NOT line MATCHES "\\\\$")
      string(REPLACE "\\" "\\\\" line "${line}")
      string(APPEND text "${line}\n")
      math(EXPR examples "${examples} + 1")
    endif()
  endforeach()
  if(text)
    set(text "[EXAMPLES]\n.nf\n${text}.fi\n\n")
  endif()
  string(APPEND text "[EXIT STATUS]\n"
    "0 if it was done, 1 if it failed or found that something is wrong, 2 if it was used wrongly, 3 if what it was to "
    "judge can be neither accepted nor refused (history).\n")
  file(WRITE ${file} "${text}")
endfunction()

# Makes the page of a command, and those of its subcommands.
function(write_pages call)
  # The first line describes the command; a semicolon would end an argument.
  separate_arguments(arguments UNIX_COMMAND "${call}")
  execute_process(COMMAND ${arguments} --help OUTPUT_VARIABLE help)
  string(REGEX REPLACE "[;\n].*" "" name "${help}")
  string(REPLACE " " "-" page ${call})
  write_sections(${made}/${page}.sections "${call}")
  # help2man takes the page's name from the version string.
  write_output(${made}/${page}.1 ${help2man} --no-info --include=${made}/${page}.sections
    "--version-string=${page} ${version}" --name=${name} ${call})
  file(INSTALL ${made}/${page}.1 DESTINATION ${man}/man1)
  if(NOT help MATCHES "\nSubcommands:\n")
    return()
  endif()
  string(REGEX REPLACE ".*\nSubcommands:\n" "" commands "${help}")
  string(REGEX MATCHALL "\n?  [a-z][a-z-]* " commands "${commands}")
  foreach(command ${commands})
    string(STRIP "${command}" command)
    write_pages("${call} ${command}")
  endforeach()
endfunction()

write_pages(perdura)
