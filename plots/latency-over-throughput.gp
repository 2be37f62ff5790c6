# Latency over the throughput at which it was measured: a logarithmic y-axis, since beyond saturation an
# open loop's response times grow by decades. The lines follow the load that was offered, so that of
# a system whose throughput falls when it is asked for too much turns back.
# x-axis: numbers
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

stats csv using "noisy" nooutput
if (STATS_max > 0) { set label 5 noise_text at screen 0.026, screen above_edge(0.035) left textcolor rgb muted font ",".small_size }
stats csv using "x" nooutput
most = STATS_max > 0 ? STATS_max * 1.12 : 1
set xrange [0:most]
# At most six numbers, which do not run into each other, and none so far right that it is cut off.
magnitude = 10 ** floor(log10(most / 5))
step = most / 5 / magnitude <= 2 ? 2 * magnitude : most / 5 / magnitude <= 5 ? 5 * magnitude : 10 * magnitude
set xtics 0, step, most * 0.97
stats csv using (missing("y") ? NaN : column("y")) nooutput
bottom = STATS_min
top = STATS_max
set logscale y 10
set format y "%.0s%c"
# More than a decade, so that there are two numbers on the axis.
set yrange [bottom / 1.6:(top > 12 * bottom ? top * 1.6 : bottom * 20)]

# An interval that reaches 0 is cut off at the axis.
lower(i) = (!repeated(i) || column("y_low") <= 0) ? bottom / 1.6 : column("y_low")
load folder."legend.gp"
plot for [i=1:series_count] csv using (repeated(i) ? column("x") : NaN):(lower(i)):(0): \
         (column("y_high") - lower(i)) with vectors heads size screen 0.006, 90 nofilled \
         lw 1 dt 1 lc rgb COLOR[STYLE[i]] notitle, \
     for [i=1:series_count] csv using (of(i) ? column("x") : NaN):(number(i, "y")) \
         with linespoints ls STYLE[i] title (own_legend ? "" : LABEL[i]), \
     for [i=1:series_count] csv using (of(i) ? column("x") : NaN):(number(i, "y")): \
         (column("noisy") > 0 ? "*" : "") with labels offset 0.7,0.5 textcolor rgb ink notitle
