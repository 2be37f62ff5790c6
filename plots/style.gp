# The look that all figures have in common. A figure's script is called as
#   gnuplot -c plots/<script>.gp CSV OUTPUT svg|png TITLE XLABEL YLABEL ORIGIN
# and loads this file first. It reads nothing but the CSV, whose columns docs/figures.md describes.
csv = ARG1
output_file = ARG2
title_text = ARG4
x_label = ARG5
y_label = ARG6
origin = ARG7

# A script that needs another size sets it before.
if (!exists("svg_height")) { svg_height = 330; png_height = 990 }
if (!exists("svg_width")) { svg_width = 400 }

set encoding utf8
set datafile separator comma
set datafile columnheaders

# Names and styles of the series, in the order of the CSV.
slot(i) = (i % 8) + 1
stats csv using "series_index" nooutput
series_count = int(STATS_max) + 1
array LABEL[series_count]
array STYLE[series_count]
stats csv using (LABEL[int(column("series_index")) + 1] = strcol("label"), \
                 STYLE[int(column("series_index")) + 1] = slot(int(column("style"))), \
                 column("series_index")) nooutput
longest_label = 0
do for [i=1:series_count] { if (strlen(LABEL[i]) > longest_label) { longest_label = strlen(LABEL[i]) } }

# Two columns of names at most, and only of short ones: more side by side would not fit.
if (!exists("more_names")) { more_names = 0 }
key_rows = longest_label > 20 ? series_count + more_names : series_count < 4 ? 2 : ceil((series_count + 1) / 2.0)
if (key_rows < 2) { key_rows = 2 }
# Below many names the plot keeps its height: the figure grows by a row's height for each further one.
# Places are shares of the usual height, counted from the edge to which they keep their distance.
key_row = 0.062
own_legend = key_rows > 5
if (own_legend && longest_label <= 20) { key_rows = more_names + ceil(series_count / 2.0) }
growth = own_legend ? 1 + key_row * (key_rows - 5) : 1
below_edge(share) = 1 - (1 - share) / growth
above_edge(share) = share / growth
svg_height = ceil(svg_height * growth)
png_height = ceil(png_height * growth)

if (ARG3 eq "png") {
  # Three times the size of the SVG, for print.
  set terminal pngcairo size 3*svg_width,png_height font "sans,29" linewidth 3 pointscale 3 dashlength 0.8 \
      background rgb "#ffffff" noenhanced
} else {
  # 400 pixels: on a phone the figure is drawn nearly 1:1, so that its text stays legible.
  set terminal svg size svg_width,svg_height dynamic font "sans-serif,13" linewidth 1 noenhanced
}
# Here, since ARG3 is gone in files that are loaded.
small_size = ARG3 eq "png" ? "22" : "10"
bar_size = ARG3 eq "png" ? "25" : "11"
title_size = ARG3 eq "png" ? "27" : "12"
text_size  = ARG3 eq "png" ? 29 : 13
set output output_file

ink   = "#222222"
muted = "#6b6b6b"
faint = "#dddddd"
shade = "#ece5d5"

# Okabe and Ito's palette: distinguishable with every common color deficiency. Dash types, point
# types and fill patterns repeat the distinction for print without color. The seventh and eighth are
# not theirs, whose black and yellow are too close to the text and to the paper.
array COLOR[8]   = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7a4b9d", "#8a6d3b"]
array PATTERN[8] = [3, 4, 1, 5, 2, 6, 7, 0]
set style line 1 lc rgb COLOR[1] lw 1.8 dt 1             pt 7  ps 0.8
set style line 2 lc rgb COLOR[2] lw 1.8 dt (9, 4)        pt 4  ps 0.9
set style line 3 lc rgb COLOR[3] lw 1.8 dt (3, 3)        pt 9  ps 0.9
set style line 4 lc rgb COLOR[4] lw 1.8 dt (9, 3, 2, 3)  pt 12 ps 1.0
set style line 5 lc rgb COLOR[5] lw 1.8 dt (6, 2, 2, 2, 2, 2) pt 11 ps 0.9
set style line 6 lc rgb COLOR[6] lw 1.8 dt (2, 5)        pt 2  ps 0.9
set style line 7 lc rgb COLOR[7] lw 1.8 dt (12, 3)       pt 1  ps 1.1
set style line 8 lc rgb COLOR[8] lw 1.8 dt (4, 2)        pt 13 ps 0.9

of(i)        = int(column("series_index")) == i - 1
missing(c)   = strcol(c) eq ""
number(i, c) = (!of(i) || missing(c) || strcol(c) eq "inf") ? NaN : column(c)
repeated(i)  = of(i) && column("repetitions") > 1

set border 3 lc rgb muted lw 0.8
set tics nomirror out scale 0.5 textcolor rgb ink
set grid ytics lc rgb faint lw 1 dt 1
set xlabel x_label textcolor rgb ink offset 0,0.5

# Fixed margins: figures that stand side by side have their axes in line. From the top: title (if
# any), key, plot, tics, name of the x-axis, origin.
titled = strlen(title_text) > 0
set lmargin at screen 0.205
set rmargin at screen 0.975
# A title of more than a line stands in two.
fold(text, at) = text[at:at] eq " " ? text[1:at - 1]."\n".text[at + 1:*] : at < 20 ? text : fold(text, at - 1)
title_most = 54 * svg_width / 400
folded = strlen(title_text) > title_most
key_top = folded ? 0.865 : titled ? 0.905 : 0.985
set tmargin at screen below_edge(key_top - 0.16 - key_row * (key_rows - 2))
set bmargin at screen above_edge(strlen(x_label) ? 0.225 : 0.165)
if (titled) {
  set label 2 (folded ? fold(title_text, title_most) : title_text) at screen 0.02, screen below_edge(0.955) left \
      textcolor rgb ink font ",".title_size
}
# A name that is wider than the figure is written smaller.
key_most = 46.0 * svg_width / 400
key_size = longest_label > key_most ? text_size * key_most / longest_label : text_size
key_font = sprintf(",%.0f", key_size)
set key at screen 0.03, screen below_edge(key_top) left top vertical maxrows key_rows font key_font \
    Left reverse samplen 2.5 spacing 1.15 width (longest_label < 8 ? 1 : -2) textcolor rgb ink
# Not `set ylabel`: its distance depends on how wide each terminal takes the tics to be.
set label 3 y_label at screen 0.026, graph 0.5 center rotate by 90 textcolor rgb ink
# Numbers of five digits or more beside the y-axis are written smaller, or they would touch its name.
wide_numbers = 1e4
# The meaning of the mark of a point.
noise_text = "* the host was not quiet"
# An image leaves its page; where the numbers come from must travel with it.
set label 1 origin at screen 0.975, screen above_edge(0.035) right textcolor rgb muted font ",".small_size
