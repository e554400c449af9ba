# plots.awk: the second half of figures.awk. Draws how something grows, from the rows
# of figures.json that have a "plot", a "series" there, and an "x".
#
# Each point is a bar from the least to the most of all runs; what is between the bars
# of a series is shaded. A row that was never measured is no point, and a plot with one
# x is none.

BEGIN {
    title["threads"] = "Time for a pair, by threads that each have a lock of their own"
    across["threads"] = "threads of one client"
    up["threads"] = "times what raw hiredis takes with a connection for each thread (1)"
    one["threads"] = 1

    title["waiters"] = "Script calls for a section, by how many want one lock"
    across["waiters"] = "threads that want it, all the time"
    up["waiters"] = "calls of the server"

    title["renewal"] = "What it costs a client to renew a lock, by how many it holds"
    across["renewal"] = "locks that it holds"
    up["renewal"] = "µs of its processor"
}

# --- what is plotted ---

# Which xs, in order, and which series the plot has.
function points_of(name,   i, k, swap, seen) {
    xs = lines = 0
    for (i = 1; i <= n; i++) {
        if (plot_of[i] != name) continue
        if (!(("x", x[i]) in seen)) {
            seen["x", x[i]] = 1
            at[++xs] = x[i]
            for (k = xs; k > 1 && at[k] + 0 < at[k - 1] + 0; k--) {
                swap = at[k]; at[k] = at[k - 1]; at[k - 1] = swap
            }
        }
        if (!(("s", series[i]) in seen)) {
            seen["s", series[i]] = 1
            line_name[++lines] = series[i]
        }
    }
}
function row_at(name, s, where,   i) {
    for (i = 1; i <= n; i++)
        if (plot_of[i] == name && series[i] == s && x[i] == where) return i
    return 0
}
# "1.26 to 1.49"
function range(i) { return least[i] == most[i] ? least[i] : least[i] " to " most[i] }

# --- where it is ---

function x_at(value) {
    return 60 + log(value / at[1]) / log(at[xs] / at[1]) * 440
}
function y_at(value) {
    return 280 - value / high * 215
}
# What the scale goes to, and how far its marks are apart.
function scale_of(name,   i) {
    high = 0
    for (i = 1; i <= n; i++)
        if (plot_of[i] == name && most[i] + 0 > high) high = most[i] + 0
    for (step = .25; step * 6 < high; step *= 2)
        ;
    high = int(high / step + .999) * step
}

# --- drawing ---

function put(s) { drawn = drawn s "\n" }
function words(x, y, s, class) {
    put(sprintf("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>", x, y, class, escaped(s)))
}
function level(value, class) {
    put(sprintf("<path class=\"%s\" d=\"M60 %.1fH500\"/>", class, y_at(value)))
    words(54, y_at(value) + 4, value + 0 "", "end")
}
function scales(name,   k, value) {
    for (value = 0; value <= high + step / 2; value += step)
        level(value, value == one[name] + 0 && value ? "one" : "grid")
    for (k = 1; k <= xs; k++) words(x_at(at[k]), 297, at[k] "", "mid")
    words(280, 315, across[name], "mid soft")
    words(8, 44, up[name], "soft")
}
# How many points the series has.
function shade(name, s, class,   k, i, there, back, of) {
    for (k = 1; k <= xs; k++)
        if ((i = row_at(name, s, at[k]))) {
            of++
            there = there (there ? "L" : "M") sprintf("%.1f %.1f", x_at(at[k]), y_at(most[i]))
            back = sprintf("L%.1f %.1f", x_at(at[k]), y_at(least[i])) back
        }
    if (of > 1) put("<path class=\"" class " band\" d=\"" there back "Z\"/>")
    return of
}
function marks(name, s, class, aside,   k, i, top, tall) {
    for (k = 1; k <= xs; k++)
        if ((i = row_at(name, s, at[k]))) {
            top = y_at(most[i]); tall = y_at(least[i]) - top
            if (tall < 4) { top -= (4 - tall) / 2; tall = 4 }
            put(sprintf("<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"%.1f\" rx=\"2\"><title>%s, %s: %s</title></rect>", class, x_at(at[k]) - 4.5 + aside, top, tall, escaped(s), at[k], range(i)))
        }
}
function told(name, s,   k, i, all) {
    for (k = 1; k <= xs; k++)
        if ((i = row_at(name, s, at[k])))
            all = all (all ? ", " : "") range(i) " at " at[k]
    return s ": " all
}
function about_plot(name,   k, all) {
    all = title[name] "; " up[name] "."
    for (k = 1; k <= lines; k++) all = all " " told(name, line_name[k]) "."
    return all
}
function tints(list,   c) {
    split(list, c, " ")
    return ".ground{fill:" c[1] "}text{fill:" c[2] "}.grid{stroke:" c[3] "}.one{stroke:" c[2] "}.soft{fill:" c[4] "}.s1{fill:" c[5] "}.s2{fill:" c[6] "}.s3{fill:" c[7] "}.s4{fill:" c[8] "}.s5{fill:" c[9] "}"
}
function plot(name,   k, file, about, aside, of_line) {
    points_of(name)
    if (xs < 2) return
    scale_of(name)
    drawn = ""
    scales(name)
    for (k = 1; k <= lines; k++) of_line[k] = shade(name, line_name[k], "s" k)
    aside = 0
    for (k = 1; k <= lines; k++) {
        # Lone points of several series would cover each other.
        marks(name, line_name[k], "s" k, of_line[k] > 1 ? 0 : 11 * aside++)
        put(sprintf("<rect class=\"s%d\" x=\"525\" y=\"%d\" width=\"9\" height=\"9\" rx=\"2\"/>", k, 62 + 22 * k))
        words(540, 70 + 22 * k, line_name[k], "")
    }
    about = about_plot(name)
    file = folder "/" name ".svg"
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 830 325\" width=\"830\" height=\"325\" role=\"img\" aria-labelledby=\"t d\">" >file
    print "<title id=\"t\">" escaped(title[name]) "</title>" >file
    print "<desc id=\"d\">" escaped(about) "</desc>" >file
    print "<style>" >file
    print "text{font:11px -apple-system,\"Segoe UI\",\"Noto Sans\",Helvetica,Arial,sans-serif}.end{text-anchor:end}.mid{text-anchor:middle}.band{opacity:.25}" >file
    print tints("#fff #1f2328 #e4e7eb #8b949e #2f9e6b #3b7dd8 #d9822b #a05bd0 #c2405a") >file
    print "@media(prefers-color-scheme:dark){" tints("#0d1117 #e6edf3 #262c34 #8b949e #4cc38a #6aa9ff #f0a35a #c792ea #f0708a") "}" >file
    print "</style>" >file
    print "<rect class=\"ground\" width=\"830\" height=\"325\" rx=\"8\"/>" >file
    print "<text x=\"8\" y=\"22\" style=\"font-size:15px;font-weight:600\">" escaped(title[name]) "</text>" >file
    printf "%s</svg>\n", drawn >file
    close(file)
    print "\n![" about "](figures/" name ".svg)"
}
