# One line per series over a numeric x-axis: mean, 95 % confidence interval where there is more than
# one repetition, and the paper's reported average. Loaded by the scripts that set the x-axis.
stats csv using "noisy" nooutput
if (STATS_max > 0) { set label 5 noise_text at screen 0.026, screen above_edge(0.035) left textcolor rgb muted font ",".small_size }
stats csv using (missing("y") ? NaN : column("y_high")) nooutput
top = STATS_max
has_paper = 0
stats csv using (missing("paper_average") ? 0 : (has_paper = 1, column("paper_average"))) nooutput
if (STATS_max > top) { top = STATS_max }
set yrange [0:(top > 0 ? top * 1.12 : 1)]
if (top >= wide_numbers) { set ytics font ",".small_size; set format y "%.7g" }
if (!exists("log_y")) { log_y = 0 }
# Below many names there is little height: six numbers at most beside the axis.
round_up(step) = (power = 10**floor(log10(step)), \
                  power * (step <= power ? 1 : step <= 2 * power ? 2 : step <= 5 * power ? 5 : 10))
if (key_rows > 3 && top > 0 && !log_y) { set ytics round_up(top * 1.12 / 6) }
if (log_y) {
  set logscale y
  set yrange [*:*]
  # Small numbers are written out: 0.1 GB/s is no "100m".
  set format y (top >= 1000 ? "%.0s%c" : "%g")
}

load folder."legend.gp"
# Vectors with square heads: gnuplot's own error bars paint a white disc under each point.
# The paper's line begins with the series' point, which tells whose it is without color.
plot for [i=1:series_count] csv using "x":(number(i, "paper_average")) \
         with lines lw 1 dt (5, 4) lc rgb COLOR[STYLE[i]] notitle, \
     for [i=1:series_count] csv using (column("x_index") == 0 ? column("x") : NaN): \
         (number(i, "paper_average")) with points ls STYLE[i] ps 0.7 notitle, \
     for [i=1:series_count] csv using (repeated(i) ? column("x") : NaN):"y_low":(0): \
         (column("y_high") - column("y_low")) with vectors heads size screen 0.006, 90 nofilled \
         lw 1 dt 1 lc rgb COLOR[STYLE[i]] notitle, \
     for [i=1:series_count] csv using "x":(number(i, "y")) \
         with linespoints ls STYLE[i] title (own_legend ? "" : LABEL[i]), \
     for [i=1:series_count] csv using "x":(number(i, "y")):(column("noisy") > 0 ? "*" : "") \
         with labels offset 0.7,0.5 textcolor rgb ink notitle, \
     (has_paper ? 0 : NaN) with lines lw 1 dt (5, 4) lc rgb muted \
         title (has_paper ? "paper, average" : "")
