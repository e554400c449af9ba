# figures.awk -v folder=FOLDER, with plots.awk: from figures.json the tables of
# figures.md, and there the plots.
#
# In each group the rows that do not reach their aim come first, the worst of them on
# top. figures.svg has what is a multiple of something else, on a scale of logarithms: a
# bar from the least to the most, and a mark where the aim is.

function field(name,   s) {
    if (!match($0, "\"" name "\": (\"[^\"]*\"|\\[[^]]*\\]|[^,}]*)")) return ""
    s = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
    gsub(/^["[]|["\]]$/, "", s)
    return s == "null" ? "" : s
}
/^\{"runs"/ { runs = field("runs") }
/^ "when"/ { when = field("when") }
/^ "machine"/ { machine = field("machine") }
/"measured": \[\]/ { next } # not yet
/"group"/ {
    g[++n] = field("group")
    if (g[n] != g[n - 1]) group[++groups] = g[n]
    what[n] = field("what"); against[n] = field("against")
    unit[n] = field("unit"); aim[n] = field("aim")
    plot_of[n] = field("plot"); series[n] = field("series"); x[n] = field("x")
    of[n] = split(field("measured"), m, / *, */)
    for (i = 1; i <= of[n]; i++)
        for (k = i; k > 1 && m[k] + 0 < m[k - 1] + 0; k--) {
            swap = m[k]; m[k] = m[k - 1]; m[k - 1] = swap
        }
    least[n] = m[1]; most[n] = m[of[n]]
    median[n] = of[n] % 2 ? m[(of[n] + 1) / 2] : ""
}

# How bad: by how much the aim is not reached; of those that reach it, the order stays.
function badness(i) {
    if (aim[i] == "") return -1
    if (most[i] + 0 <= aim[i] + 0) return 0
    return aim[i] + 0 == 0 ? 1e9 : most[i] / aim[i]
}
function sorted(name,   i, k, swap) {
    rows = 0
    for (i = 1; i <= n; i++)
        if (g[i] == name) {
            row[++rows] = i
            for (k = rows; k > 1 && badness(row[k]) > badness(row[k - 1]); k--) {
                swap = row[k]; row[k] = row[k - 1]; row[k - 1] = swap
            }
        }
}
function with(value, i) { return value == "" ? "" : value (unit[i] == "times" ? "" : " " unit[i]) }

function table(name,   k, i) {
    print "\n## " name
    sorted(name)
    for (k = 1; k <= rows && !plot_of[row[k]]; k++)
        ;
    if (k <= rows) plot(plot_of[row[k]])
    print "\n| what | against | least | median | most | aim |"
    print "|---|---|---|---|---|---|"
    for (k = 1; k <= rows; k++) {
        i = row[k]
        ends = (of[i] > 1)
        printf("| %s | %s | %s | %s | %s | %s |\n", what[i], against[i],
            ends ? with(least[i], i) : "", with(median[i], i),
            ends ? with(most[i], i) : "", with(aim[i], i))
    }
}

# --- the plot ---

function x_of(value) {
    if (value < LOW) value = LOW
    return RIGHT + log(value / LOW) / log(HIGH / LOW) * (WIDTH - RIGHT - 20)
}
function escaped(s) {
    gsub(/`/, "", s); gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s)
    return s
}
function draw(s) { body = body s "\n" }
function text(x, y, s, class) {
    draw(sprintf("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>", x, y, class, escaped(s)))
}
function line(x, from, to, class) {
    draw(sprintf("<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", class, x, from, to))
}
function bar(i, y,   x, w) {
    x = x_of(least[i]); w = x_of(most[i]) - x
    if (w < 3) { x -= (3 - w) / 2; w = 3 }
    draw(sprintf("<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"9\" rx=\"2\"/>", badness(i) > 0 ? "bad" : badness(i) ? "none" : "good", x, y - 9, w))
    if (aim[i] != "") line(x_of(aim[i]), y - 12, y + 2, "aim")
}
function cut(s, most) { return length(s) > most ? substr(s, 1, most - 2) ".." : s }
function plotted(   y, k, i, j, some, top) {
    WIDTH = 830; LEFT = 335; RIGHT = 530; LOW = .2; HIGH = 6
    y = 52; top = y
    text(LEFT - 8, y - 5, "what", "soft end")
    text(LEFT + 4, y - 5, "against", "soft")
    for (k = 1; k <= groups; k++) {
        sorted(group[k]); some = 0
        for (j = 1; j <= rows; j++) {
            i = row[j]
            if (unit[i] != "times") continue
            if (!some++) { y += 24; text(8, y, group[k], "b"); y += 4 }
            y += 16
            text(LEFT - 8, y, cut(what[i], 56), "end")
            text(LEFT + 4, y, cut(against[i], 36), "soft")
            bar(i, y)
        }
    }
    ticks = split(".25 .5 1 2 4", tick, " ")
    for (k = 1; k <= ticks; k++) {
        scale = scale sprintf("<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>\n", tick[k] == 1 ? "one" : "grid", x_of(tick[k]), top, y + 8)
        scale = scale sprintf("<text x=\"%.1f\" y=\"%.1f\" class=\"mid\">%s</text>\n", x_of(tick[k]), top - 5, tick[k] + 0 "")
    }
    return y + 18
}
function colours(list,   c) {
    split(list, c, " ")
    return ".ground{fill:" c[1] "}text{fill:" c[2] "}.grid{stroke:" c[3] "}.one{stroke:" c[2] "}.good{fill:" c[4] "}.bad{fill:" c[5] "}.aim{stroke:" c[2] "}.none,.soft{fill:" c[6] "}"
}
function picture(   high, about, file) {
    high = plotted(); file = folder "/figures.svg"
    about = "What rlock takes as a multiple of what it is compared with, on a scale of logarithms: left of 1 it takes less. Each bar goes from the least to the most of " runs " runs; a line marks the aim. The figures are in the tables."
    print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 830 " high "\" width=\"830\" height=\"" high "\" role=\"img\" aria-labelledby=\"t d\">" >file
    print "<title id=\"t\">As a multiple of what it is compared with</title>" >file
    print "<desc id=\"d\">" about "</desc>" >file
    print "<style>" >file
    print "text{font:11px -apple-system,\"Segoe UI\",\"Noto Sans\",Helvetica,Arial,sans-serif}.b{font-weight:600;font-size:12px}.end{text-anchor:end}.mid{text-anchor:middle}.aim{stroke-width:2}" >file
    print colours("#fff #1f2328 #e4e7eb #2f9e6b #d9822b #8b949e") >file
    print "@media(prefers-color-scheme:dark){" colours("#0d1117 #e6edf3 #262c34 #4cc38a #f0a35a #8b949e") "}" >file
    print "</style>" >file
    print "<rect class=\"ground\" width=\"830\" height=\"" high "\" rx=\"8\"/>" >file
    print "<text x=\"8\" y=\"20\" class=\"b\" style=\"font-size:15px\">As a multiple of what it is compared with: left of 1 it takes less</text>" >file
    printf "%s%s</svg>\n", scale, body >file
    print "![" about "](figures/figures.svg)"
}

END {
    if (!n) exit 1
    print "\nMeasured " when ", on " machine ": " runs (runs == 1 ? " run." : " runs.") "\n"
    picture()
    for (k = 1; k <= groups; k++) table(group[k])
    print ""
}
