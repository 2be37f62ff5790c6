# Latency over the value size, which doubles from point to point: a logarithmic x-axis.
more_names = 1  # the line of the paper
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

stats csv using "x" nooutput
set logscale x 2
set xrange [STATS_min / 1.25:STATS_max * 1.25]
set xtics ("1" 1, "4" 4, "16" 16, "64" 64, "256" 256, "1 Ki" 1024, "4 Ki" 4096, "16 Ki" 16384, \
           "64 Ki" 65536, "256 Ki" 262144, "1 Mi" 1048576)
load folder."lines.gp"
