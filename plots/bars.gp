# Bars grouped by the x column: their places, and the names below the groups. Loaded by the scripts that
# set the y-axis and draw them.
stats csv using "x_index" nooutput
group_count = int(STATS_max) + 1
array GROUP[group_count]
stats csv using (GROUP[int(column("x_index")) + 1] = strcol("x_label"), column("x_index")) nooutput

stats csv using "noisy" nooutput
if (STATS_max > 0) { set label 5 noise_text at screen 0.026, screen above_edge(0.035) left textcolor rgb muted font ",".small_size }

width = 0.84 / series_count
position(i) = column("x_index") + (i - (series_count + 1) / 2.0) * width

set xrange [-0.55:group_count - 0.45]
set xtics ()
# Names that would run into each other stand in several lines.
characters = 0
do for [g=1:group_count] { if (strlen(GROUP[g]) > characters) { characters = strlen(GROUP[g]) } }
lines(text) = strstrt(text, " / ") == 0 ? text : \
    text[1:strstrt(text, " / ") - 1]."\n".lines(text[strstrt(text, " / ") + 3:*])
if (characters * group_count > 40 && strstrt(GROUP[1], " / ") > 0) {
  do for [g=1:group_count] { GROUP[g] = lines(GROUP[g]) }
  # Not the x-axis' own name: the terminals do not agree on how far below two lines it stands.
  unset xlabel
  set bmargin at screen above_edge(0.28)
  set label 4 x_label at graph 0.5, screen above_edge(0.09) center textcolor rgb ink
}
do for [g=1:group_count] { set xtics add (GROUP[g] g - 1) }
set tics scale 0
set boxwidth width * 0.9
