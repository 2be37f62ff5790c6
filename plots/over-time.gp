# One point over time, in two panels with one time axis: the latency of the operations that ended in each
# interval, mean and largest, and the free space of the store. The spans in which something was being
# cleaned are shaded in both. Latency is logarithmic: an operation that waits takes decades longer.
svg_height = 400
png_height = 1200
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

stats csv using "x" nooutput
first_x = STATS_min
interval = STATS_records > 1 ? (STATS_max - STATS_min) / (STATS_records - 1) : 1
last_x = STATS_max + interval
has_space = 0
has_cleaning = 0
stats csv using (missing("free_percent") ? 0 : (has_space = 1, column("free_percent"))) nooutput
stats csv using (missing("cleanings_now") || column("cleanings_now") == 0 ? 0 : (has_cleaning = 1)) nooutput
stats csv using (missing("y_max") ? NaN : column("y_max")) nooutput
top = STATS_max
stats csv using (missing("y") ? NaN : column("y")) nooutput
bottom = STATS_min

middle(x) = x + interval / 2
cleaning(x) = missing("cleanings_now") || column("cleanings_now") == 0 ? NaN : x
# A span's edges are those of its intervals.
set boxwidth interval absolute
set style fill solid 1 noborder

low = bottom / 1.6
# More than a decade, so that there are two numbers on the axis.
high = top > 12 * bottom ? top * 1.6 : bottom * 20
plot_top = titled ? 0.79 : 0.855
gap = has_space ? 0.45 : 0.19

set xrange [first_x:last_x]
set tmargin at screen plot_top
set bmargin at screen gap
set key at screen 0.03, screen (titled ? 0.92 : 0.985) maxrows 2
set logscale y 10
set yrange [low:high]
set format y "%.0s%c"
set label 3 y_label at screen 0.026, graph 0.5
if (has_space) { set xlabel ""; set format x "" }

set multiplot
plot csv using (cleaning(middle(column("x")))):(high) with boxes lc rgb shade \
         title (has_cleaning ? "log cleaning" : ""), \
     csv using (middle(column("x"))):(missing("y_max") ? NaN : column("y_max")) \
         with lines lw 0.8 dt 1 lc rgb muted title "largest latency", \
     csv using (middle(column("x"))):(missing("y") ? NaN : column("y")) \
         with lines lw 1.6 dt 1 lc rgb COLOR[STYLE[1]] title "mean latency"

if (has_space) {
  unset key
  unset label 1
  unset label 2
  unset logscale y
  set tmargin at screen 0.415
  set bmargin at screen 0.19
  set yrange [0:100]
  set ytics 50
  set format y "%g"
  set format x "%g"
  set xlabel x_label textcolor rgb ink offset 0,0.5
  set label 3 "Free (%)" at screen 0.026, graph 0.5
  plot csv using (cleaning(middle(column("x")))):(100) with boxes lc rgb shade, \
       csv using (column("x") + interval):(missing("free_percent") ? NaN : column("free_percent")) \
           with lines lw 1.6 dt 1 lc rgb COLOR[STYLE[1]]
}
unset multiplot
