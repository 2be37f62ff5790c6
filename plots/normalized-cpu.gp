# Bars grouped by the x column, each normalized by one series. The ratios span more than a decade
# (a cost near zero is the point of one-sided reads), hence the logarithmic y-axis; every bar carries
# its number, and with more than one repetition its 95 % confidence interval, as far as it is above the
# axis' lower end. A cost divided by zero has no bar, only its text.
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."style.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7

load folder."bars.gp"
low = 1
high = 2
drawn(c) = missing(c) || strcol(c) eq "inf" || column(c) <= 0 ? 1 : column(c)
stats csv using (drawn("y")) nooutput
if (STATS_min < low) { low = STATS_min }
stats csv using (drawn("y_high")) nooutput
if (STATS_max > high) { high = STATS_max }
floor_y = low / 2.0

bar(i) = (number(i, "y") > 0) ? number(i, "y") : NaN
top(i) = bar(i) > 0 && repeated(i) ? number(i, "y_high") : bar(i)
bottom(i) = number(i, "y_low") > floor_y ? number(i, "y_low") : floor_y
no_bar(i) = of(i) && !(bar(i) > 0) ? floor_y : NaN

set logscale y 10
set yrange [floor_y:high * (high / floor_y) ** 0.25]
set format y "%g"
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb muted lw 0.8 dt 1 back

legend_of_bars = 1
load folder."legend.gp"
plot for [i=1:series_count] csv using (position(i)):(bar(i)) with boxes \
         fs pattern PATTERN[STYLE[i]] border rgb COLOR[STYLE[i]] lc rgb COLOR[STYLE[i]] lw 1 \
         title (own_legend ? "" : LABEL[i]), \
     for [i=1:series_count] csv using (bar(i) > 0 && repeated(i) ? position(i) : NaN):(bottom(i)):(0): \
         (top(i) - bottom(i)) with vectors heads size screen 0.006, 90 nofilled \
         lw 1 dt 1 lc rgb ink notitle, \
     for [i=1:series_count] csv using (position(i)):(top(i)):"text" with labels \
         rotate by 90 left offset 0,0.4 font ",".bar_size textcolor rgb ink notitle, \
     for [i=1:series_count] csv using (position(i)):(no_bar(i)):"text" with labels \
         center offset 0,0.6 textcolor rgb ink notitle
