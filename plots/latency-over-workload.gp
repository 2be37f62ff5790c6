# Latency, or any other quantity, as bars grouped by the x column: linear from 0, so that the heights
# compare as the numbers do. Every bar carries its number, and with more than one repetition its 95 %
# confidence interval.
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7
load folder."bars.gp"

# Narrow bars that stand close together take smaller numbers: as wide as a bar with a gap, at the widest.
stats csv using (strlen(strcol("text"))) nooutput
fitting = 400.0 / (series_count * group_count * (STATS_max + 0.4)) * text_size / 13
if (fitting < bar_size) { bar_size = sprintf("%.1f", fitting) }

top(i) = repeated(i) ? number(i, "y_high") : number(i, "y")
stats csv using (missing("y") ? NaN : column("y_high")) nooutput
set yrange [0:(STATS_max > 0 ? STATS_max * 1.12 : 1)]
if (STATS_max >= wide_numbers) { set ytics font ",".small_size; set format y "%.7g" }

legend_of_bars = 1
load folder."legend.gp"
plot for [i=1:series_count] csv using (position(i)):(number(i, "y")) with boxes \
         fs pattern PATTERN[STYLE[i]] border rgb COLOR[STYLE[i]] lc rgb COLOR[STYLE[i]] lw 1 \
         title (own_legend ? "" : LABEL[i]), \
     for [i=1:series_count] csv using (repeated(i) ? position(i) : NaN):"y_low":(0): \
         (column("y_high") - column("y_low")) with vectors heads size screen 0.006, 90 nofilled \
         lw 1 dt 1 lc rgb ink notitle, \
     for [i=1:series_count] csv using (position(i)):(top(i)):"text" with labels \
         center offset 0,0.55 font ",".bar_size textcolor rgb ink notitle
