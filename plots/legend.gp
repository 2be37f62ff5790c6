# The names of many series, in place of gnuplot's key: that one has no more rows than fit beside the plot, and cuts off
# what stands in further columns. Loaded by the scripts that draw series, before they do; a script that draws bars sets
# legend_of_bars before.
if (!exists("legend_of_bars")) { legend_of_bars = 0 }
if (own_legend) {
  legend_font = sprintf(",%.1f", key_size)
  do for [i=1:series_count] {
    legend_row = more_names + (i - 1) % (key_rows - more_names)
    legend_x = 0.03 + 0.48 * ((i - 1) / (key_rows - more_names))
    legend_y = below_edge(key_top) - (legend_row + 0.5) * key_row / growth
    if (legend_of_bars) {
      set object 100+i rectangle center screen legend_x + 0.04, screen legend_y \
          size screen 0.07, screen 0.6 * key_row / growth fc rgb COLOR[STYLE[i]] \
          fs pattern PATTERN[STYLE[i]] border rgb COLOR[STYLE[i]]
    } else {
      set arrow 100+i from screen legend_x, screen legend_y to screen legend_x + 0.08, screen legend_y \
          nohead ls STYLE[i]
      set label 1000+i "" at screen legend_x + 0.04, screen legend_y point ls STYLE[i]
    }
    set label 100+i LABEL[i] at screen legend_x + 0.1, screen legend_y left textcolor rgb ink font legend_font
  }
}
