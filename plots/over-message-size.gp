# Over a size that doubles from point to point, with values that differ by orders of magnitude, too: both
# axes are logarithmic.
# x-axis: numbers above 0
log_y = 1
folder = ARG0
while (strlen(folder) && folder[strlen(folder):*] ne "/") { folder = folder[1:strlen(folder) - 1] }
call folder."latency-over-value-size.gp" ARG1 ARG2 ARG3 ARG4 ARG5 ARG6 ARG7
