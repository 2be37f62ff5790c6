# Latency over the value size, which doubles from point to point: a logarithmic x-axis.
# x-axis: numbers above 0
more_names = 1  # the line of the paper
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

stats csv using "x" nooutput
set logscale x 2
set xrange [STATS_min / 1.25:STATS_max * 1.25]
# At most seven names, so that they do not run into each other: every power of 4, of 16 or of 64.
doublings = ceil(log(STATS_max / STATS_min) / log(2))
step = doublings <= 12 ? 2 : doublings <= 24 ? 4 : 6
name(x) = x < 1024 ? sprintf("%.0f", x) : x < 1024 ** 2 ? sprintf("%.0f Ki", x / 1024) : \
    x < 1024 ** 3 ? sprintf("%.0f Mi", x / 1024 ** 2) : sprintf("%.0f Gi", x / 1024 ** 3)
set xtics ()
do for [power=0:40:step] { set xtics add (name(2.0 ** power) 2.0 ** power) }
load folder."lines.gp"
