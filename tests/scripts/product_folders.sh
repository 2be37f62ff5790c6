# The folders of the product at the top of the tree, for the tests that read sources: from the highest layer to the
# lowest. Each may include those that follow it, and itself (layers_test.sh).
product_folders="examples program bench report harness preload mount library explore systems services methods rpc platform"

# The beginning of an awk program that reads sources in the style of .clang-format: `scope` is the namespace of the line,
# such as "perdura::fs", without its parts that have no name; `unnamed` is true in those. The closing brace of a
# namespace has a comment, except in namespaces so short that they contain no other braces.
scopes_awk='
  function look(i) {
    scope = ""; unnamed = 0
    for (i = 1; i <= depth; ++i) {
      if (names[i] == "{") unnamed = 1
      else scope = scope (scope == "" ? "" : "::") names[i]
    }
  }
  FNR == 1 { depth = 0; short = 0; look() }
  /^namespace (.* )?\{$/ { names[++depth] = $2; short = 1; look() }
  /^\}  \/\/ namespace/ || (short && /^\}$/) { if (depth > 0) --depth; short = 0; look() }
  /[({]$/ && !/^namespace / { short = 0 }
'
