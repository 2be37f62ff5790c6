# Bars grouped by the x column: their places, and the names below the groups. Loaded by the scripts that
# set the y-axis and draw them.
array GROUP[32]
stats csv using (GROUP[int(column("x_index")) + 1] = strcol("x_label"), column("x_index")) nooutput
group_count = int(STATS_max) + 1

width = 0.84 / series_count
position(i) = column("x_index") + (i - (series_count + 1) / 2.0) * width

set xrange [-0.55:group_count - 0.45]
# A name of several parts stands in as many lines where groups are narrow.
parted(name) = (slash = strstrt(name, " / "), \
  slash == 0 ? name : name[1:slash - 1]."\n".parted(name[slash + 3:*]))
set xtics ()
do for [g=1:group_count] { set xtics add ((group_count > 4 ? parted(GROUP[g]) : GROUP[g]) g - 1) }
if (group_count > 4 && strstrt(GROUP[1], " / ")) { set xlabel offset 0,-0.75 }
set tics scale 0
set boxwidth width * 0.9
