# Throughput over client threads: a linear x-axis, so that linear growth is a straight line.
# x-axis: numbers
more_names = 1  # the line of the paper
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

stats csv using "x" nooutput
set xrange [0:(STATS_max > 0 ? STATS_max * 1.04 : 1)]
if (STATS_max <= 9) {
  set xtics 1
} else { if (STATS_max <= 16) {
  set xtics ()
  do for [tic in "1 2 4 8 12 16"] { set xtics add (tic int(tic)) }
} }
load folder."lines.gp"
