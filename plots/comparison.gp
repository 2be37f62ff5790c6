# Changes from one run to another with their 95 % confidence intervals, a row each (a forest plot). The
# figure is as high as it has rows; the dashed lines are the threshold, below which a change is none.
set datafile separator comma
set datafile columnheaders
stats ARG1 using (column("row")) nooutput
rows = int(STATS_max) + 1
svg_width = 680
svg_height = 110 + 17 * rows
png_height = 3 * svg_height
shown = ARG6
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 "" ARG7

below_top(pixels) = 1 - pixels / (1.0 * svg_height)
above_bottom(pixels) = pixels / (1.0 * svg_height)
set lmargin at screen 0.56
set rmargin at screen 0.975
set tmargin at screen below_top(titled ? 52 : 32)
set bmargin at screen above_bottom(52)
set key at screen 0.03, screen below_top(titled ? 26 : 4) maxrows 1
unset label 3
set label 1 at screen 0.975, screen above_bottom(10)
set label 3 shown at screen 0.03, screen above_bottom(10) left textcolor rgb muted font ",".small_size
# One line: the figure is wide.
if (titled) { set label 2 title_text at screen 0.03, screen below_top(14) }

array NAME[rows]
stats csv using (NAME[int(column("row")) + 1] = strcol("name"), column("threshold")) nooutput
threshold = STATS_max
longest = 0
do for [row=1:rows] { if (strlen(NAME[row]) > longest) { longest = strlen(NAME[row]) } }
name_size = (ARG3 eq "png" ? 29.0 : 13.0) * (longest > 48 ? 48.0 / longest : 1)
set ytics () font ",".sprintf("%.1f", name_size)
do for [row=1:rows] { set ytics add (NAME[row] -(row - 1)) }
unset grid
set grid xtics lc rgb faint lw 1 dt 1

# Around 0, and never so narrow that a change within the threshold fills it.
or_zero(c) = missing(c) ? 0 : column(c)
stats csv using (or_zero("change")) nooutput
low = STATS_min
high = STATS_max
stats csv using (or_zero("low")) nooutput
if (STATS_min < low) { low = STATS_min }
stats csv using (or_zero("high")) nooutput
if (STATS_max > high) { high = STATS_max }
edge = 1.5 * threshold + 0.5
set xrange [(low * 1.08 < -edge ? low * 1.08 : -edge):(high * 1.08 > edge ? high * 1.08 : edge)]
set xtics autofreq
# Only now: stats leaves out what lies beyond a range.
set yrange [-(rows - 0.4):0.6]
set arrow 1 from 0, graph 0 to 0, graph 1 nohead lc rgb muted lw 1 dt 1 back
set arrow 2 from threshold, graph 0 to threshold, graph 1 nohead lc rgb muted lw 0.8 dt (5, 4) back
set arrow 3 from -threshold, graph 0 to -threshold, graph 1 nohead lc rgb muted lw 0.8 dt (5, 4) back

plot for [i=1:series_count] csv using (of(i) && !missing("low") ? column("low") : NaN): \
         (-column("row")):(column("high") - column("low")):(0) with vectors heads \
         size screen 0.004, 90 nofilled lw 1.2 dt 1 lc rgb COLOR[STYLE[i]] notitle, \
     for [i=1:series_count] csv using (number(i, "change")):(-column("row")) with points \
         pt 7 ps 0.7 lc rgb COLOR[STYLE[i]] title LABEL[i]
