# awk -v date='MONTH DAY, YEAR' -v output=DIR -f manual-headers.awk \
#     -f manual.awk HEADER...
#
# Writes section 3 of the manual, in mdoc(7), from the public headers, which are
# the manual already. A comment directly above a prototype is that function's
# page; functions below one comment share it. A header's own page, rlock(3) or
# rlock_lock.h(3), has what stands at its top, its types and its constants.
# Every other name is a link to its page. A function without a comment is an
# error.
#
# Of a comment it knows:
#
#   a paragraph    up to an empty line
#   a program      a paragraph that is indented by four blanks and more
#   a table        lines "what  is said of it"; the second part, after two blanks,
#                  may begin in, and goes on in, lines that are indented further
#   statuses       a table whose entries begin with RLOCK_: what has no words, or
#                  says "also:", means besides what base.h says of it

# --- Words ------------------------------------------------------------------

function put(line) {
    print line >page
}

# Text is collected up to 78 columns, or up to the end of a sentence.
function flush() {
    if (filled != "")
        put(filled ~ /^[.']/ ? "\\&" filled : filled)
    filled = ""
}

function plain(word) {
    gsub(/\\/, "\\e", word)
    return word
}

function add(word) {
    if (length(filled) + length(word) >= 78)
        flush()
    filled = filled == "" ? plain(word) : filled " " plain(word)
    if (word ~ /[.!?][])"]*$/ && word !~ /^[A-Z]\.$|\.\.\.$/)
        flush()
}

function argument(word) {
    word = plain(word)
    gsub(/"/, "\\(dq", word)
    return word ~ / / ? "\"" word "\"" : word
}

# rlock_f(a, b), its blanks being \001
function call(word,    name, n, i, list, line) {
    name = word
    sub(/\(.*/, "", name)
    if (name in page_of)
        seen[page_of[name]]
    if (word ~ /\(\)$/ && name in page_of && page_of[name] != subject)
        return "Xr " name " 3"
    sub(/^[^(]*\(/, "", word)
    sub(/\)$/, "", word)
    line = "Fn " name
    n = split(word, list, /,\001*/)
    for (i = 1; i <= n; i++)
        line = line " " argument(list[i])
    return line
}

function page_of_header(name) {
    return name == "rlock.h" ? "rlock" : "rlock_" name
}

# The macro for a word, or nothing.
function macro_for(word,    text) {
    text = word
    if (word ~ /^[A-Za-z_][A-Za-z0-9_]*\([^()]*\)$/)
        return call(word)
    if (word ~ /^RLOCK_[A-Z0-9_]+$/)
        return "Dv " word
    if (word ~ /^`.*`$/) {
        gsub(/`/, "", text)
        gsub(/\001/, " ", text)
        return "Ql " argument(text)
    }
    if (word in top && page_of_header(word) == subject)
        return "In rlock/" word
    if (word in top) {
        seen[page_of_header(word)]
        return "Xr " page_of_header(word) " 3"
    }
    if (word ~ /^[A-Za-z]+\.md$/)
        return "Pa " word
    sub(/^\*/, "", text)
    if (text in parameter && word ~ /[*_]/)
        return "Fa " word
    return ""
}

# What a word has around it that mdoc takes apart by itself.
function put_word(word,    before, after, core, macro) {
    before = after = ""
    core = word
    if (core ~ /^[("]/) {
        before = "Pf " argument(substr(core, 1, 1)) " "
        core = substr(core, 2)
    }
    while (core !~ /\([^()]*\)$/ && match(core, /[]).,:;?!"]$/)) {
        after = (core ~ /"$/ ? " Ns \\(dq" : " " substr(core, RSTART)) after
        core = substr(core, 1, RSTART - 1)
    }
    macro = macro_for(core)
    if (macro == "") {
        gsub(/\001/, " ", word)
        add(word)
        return
    }
    flush()
    put("." before macro after)
}

# Marks what is one word: calls with arguments, and what is in backquotes.
function joined(text, pattern,    done, found) {
    done = ""
    while (match(text, pattern)) {
        found = substr(text, RSTART, RLENGTH)
        gsub(/ /, "\001", found)
        done = done substr(text, 1, RSTART - 1) found
        text = substr(text, RSTART + RLENGTH)
    }
    return done text
}

function put_text(text,    n, i, words) {
    gsub(/\n/, " ", text)
    text = joined(text, "rlock_[a-z0-9_]+\\([^()]*\\)")
    text = joined(text, "`[^`]*`")
    n = split(text, words, " ")
    for (i = 1; i <= n; i++)
        put_word(words[i])
    flush()
}

# --- Paragraphs -------------------------------------------------------------

function indent(line) {
    match(line, /^ */)
    return RLENGTH
}

function is_statuses(line) {
    return line ~ /^ *RLOCK_[A-Z_]+(, RLOCK_[A-Z_]+)*,?$/
}

# "code", "table", or "prose"
function shape(text,    lines, n) {
    n = split(text, lines, "\n")
    if (indent(lines[1]) >= 4)
        return "code"
    if (lines[1] ~ /[^ ]  +[^ ]/ || is_statuses(lines[1]) ||
        (n > 1 && lines[2] !~ /^$/ && indent(lines[2]) >= 8))
        return "table"
    return "prose"
}

function put_code(text,    n, i, lines) {
    put(".Bd -literal -offset indent")
    n = split(text, lines, "\n")
    for (i = 1; i <= n; i++) {
        sub(/^    /, "", lines[i])
        lines[i] = plain(lines[i])
        gsub(/-/, "\\-", lines[i])
        sub(/^[.']/, "\\\\\\&&", lines[i])
        if (lines[i] != "" || i < n)
            put(lines[i])
    }
    put(".Ed")
}

# The head of an entry: words with commas between them, each marked by itself.
function put_head(head,    n, i, words, line, macro, after, known) {
    line = ".It"
    n = split(joined(head, "rlock_[a-z0-9_]+\\([^()]*\\)"), words, " ")
    known = 0
    for (i = 1; i <= n; i++) {
        after = words[i] ~ /,$/ ? " ," : ""
        sub(/,$/, "", words[i])
        macro = macro_for(words[i])
        if (macro == "" && words[i] in parameter)
            macro = "Fa " words[i]
        line = line " " (macro == "" ? argument(words[i]) : macro) after
    }
    put(line)
}

function put_entry(head, body,    n, i, names, lines) {
    if (body == "" && is_statuses(head)) {
        n = split(head, names, /, */)
        for (i = 1; i <= n; i++) {
            if (names[i] == "")
                continue
            if (!(names[i] in means))
                fail(subject ": what is " names[i] "?")
            put_head(names[i])
            put_text(means[names[i]])
        }
        return
    }
    put_head(head)
    if (body ~ /^ *also: / && head in means) {
        sub(/^ *also: */, "", body)
        body = means[head] "; also: " body
    }
    n = split(body, lines, "\n")
    for (i = 1; i <= n; i++) {
        if (i > 1)
            put(".br")
        put_text(lines[i])
    }
}

# What parts a line from what stands before it: "0: ..." and "RLOCK_FLAG: ..." are
# to begin lines.
function starts_anew(before, line) {
    return line ~ /^RLOCK_[A-Z_]+: / && before !~ /,$/ ? "\n" : " "
}

function put_table(text,    n, i, lines, base, head, body, at) {
    put(".Bl -tag -width Ds")
    n = split(text, lines, "\n")
    base = indent(lines[1])
    head = body = ""
    for (i = 1; i <= n; i++) {
        at = indent(lines[i])
        if (at == base && !(head ~ /,$/ && body == "")) {
            if (head != "")
                put_entry(head, body)
            head = body = ""
        }
        lines[i] = substr(lines[i], at + 1)
        if (at > base) {
            body = body (body == "" ? "" : starts_anew(body, lines[i])) lines[i]
        } else if (match(lines[i], /  +/)) {
            head = head (head == "" ? "" : " ") substr(lines[i], 1, RSTART - 1)
            body = substr(lines[i], RSTART + RLENGTH)
        } else {
            head = head (head == "" ? "" : " ") lines[i]
        }
    }
    if (head != "")
        put_entry(head, body)
    put(".El")
}

function put_paragraph(text, begins) {
    sub(/\n+$/, "", text)
    if (shape(text) == "code") {
        put_code(text)
    } else if (shape(text) == "table") {
        put_table(text)
    } else {
        if (!begins)
            put(".Pp")
        put_text(text)
    }
}

# The paragraphs from the one on up to the other.
function put_paragraphs(list, from, to,    i) {
    for (i = from; i <= to; i++)
        put_paragraph(list[i], i == from)
}

# --- Pages ------------------------------------------------------------------

# What a comment says in its first words.
function gist(comment) {
    gsub(/\n/, " ", comment)
    sub(/^rlock: /, "", comment)
    sub(/([.:;]( |$)|, and | \().*/, "", comment)
    return tolower(substr(comment, 1, 1)) substr(comment, 2)
}

function put_top(name, others, comment,    n, i, list) {
    page = output "/" name ".3"
    subject = name
    filled = ""
    split("", seen)
    split("", parameter)
    put(".\\\" Written from the public headers by manual.awk.")
    put(".Dd " date)
    put(".Dt " toupper(name) " 3")
    put(".Os")
    put(".Sh NAME")
    n = split(name " " others, list, " ")
    for (i = 1; i <= n; i++)
        put(".Nm " list[i] (i < n ? " ," : ""))
    comment = plain(gist(comment))
    gsub(/"/, "\\(dq", comment)
    put(".Nd " comment)
    put(".Sh LIBRARY")
    put("Distributed locks on Redis (librlock, \\-lrlock)")
    put(".Sh SYNOPSIS")
    put(".In rlock/rlock.h")
}

# Those that were mentioned, and the header's page.
function put_see_also(also,    n, i, k, name, list) {
    for (name in seen) {
        if (name != subject)
            also = also " " name
    }
    n = split(also, list, " ")
    for (i = 2; i <= n; i++) {
        name = list[i]
        for (k = i - 1; k >= 1 && tolower(list[k]) > tolower(name); k--)
            list[k + 1] = list[k]
        list[k + 1] = name
    }
    put(".Sh SEE ALSO")
    for (i = 1; i <= n; i++) {
        if (i == 1 || list[i] != list[i - 1])
            put(".Xr " list[i] " 3" (i < n && list[n] != list[i] ? " ," : ""))
    }
}

function put_links(to, names,    n, i, list) {
    n = split(names, list, " ")
    for (i = 1; i <= n; i++)
        print "ln -s " to ".3 " output "/" list[i] ".3" | "sh -e"
}

# Splits at the commas that are in no brackets, as those of a callback's are.
function parameters(text, list,    n, i, parts, depth) {
    n = split(text, parts, /, */)
    split("", list)
    text = ""
    depth = 0
    for (i = 1; i <= n; i++) {
        text = text (text == "" ? "" : ", ") parts[i]
        depth += gsub(/[(]/, "&", parts[i]) - gsub(/[)]/, "&", parts[i])
        if (depth == 0) {
            list[++list[0]] = text
            text = ""
        }
    }
    return list[0]
}

function put_prototype(text,    name, type, n, i, list) {
    gsub(/[\n ]+/, " ", text)
    sub(/^ *RLOCK_API /, "", text)
    match(text, /rlock_[a-z0-9_]+\(/)
    type = substr(text, 1, RSTART - 1)
    name = substr(text, RSTART, RLENGTH - 1)
    text = substr(text, RSTART + RLENGTH)
    sub(/ $/, "", type)
    sub(/\);? *$/, "", text)
    put(".Ft " argument(type))
    put(".Fo " name)
    n = parameters(text, list)
    for (i = 1; i <= n; i++) {
        put(".Fa " argument(list[i]))
        sub(/\[\]$|\)\(.*/, "", list[i])
        sub(/.*[ *]/, "", list[i])
        parameter[list[i]]
    }
    put(".Fc")
}

function returns_status(name) {
    return text_of[name] ~ /RLOCK_API rlock_status /
}

# Where the statuses begin, with the line that leads to them.
function statuses_begin(list, n,    i) {
    for (i = 1; i <= n; i++) {
        if (list[i] ~ /^ *RLOCK_/ && shape(list[i]) == "table")
            return i > 1 && list[i - 1] ~ /:\n*$/ ? i - 1 : i
    }
    return n + 1
}

function put_returns(name, list, from, n,    text) {
    text = comment_of[name]
    gsub(/\n/, " ", text)
    if (from > n && !(returns_status(name) && text ~ /[Aa]s rlock_/))
        return
    put(".Sh RETURN VALUES")
    if (match(text, /[Aa]s rlock_[a-z_]+\(/)) {
        text = substr(text, RSTART + 3, RLENGTH - 4)
        put("What is said of")
        put(".Xr " text " 3")
        put("holds, statuses included" (from > n ? "." : "; besides:"))
        if (from <= n && list[from] ~ /^ *RLOCK_/)
            put_paragraph(list[from++], 0)
        else if (from <= n)
            put(".Pp")
    }
    if (from <= n)
        put_paragraphs(list, from, n)
}

function put_function(name, header,    text, n, i, list, from) {
    text = comment_of[name]
    gsub(/the top of this file/, header, text)
    put_top(name, shares[name], text)
    n = split(text_of[name], list, ";\n")
    for (i = 1; i < n; i++)
        put_prototype(list[i])
    n = split(text, list, "\n\n+")
    from = statuses_begin(list, n)
    put(".Sh DESCRIPTION")
    put_paragraphs(list, 1, from - 1)
    put(".Pp")
    put_text("What holds for all functions of this header is in " header ".")
    put_returns(name, list, from, n)
    put_see_also("rlock " page_of_header(header))
    close(page)
    put_links(name, shares[name])
}

# A declaration as it stands there; those that no comment parts are together.
function put_declaration(name, together,    n, i, lines) {
    if (!together && comment_of[name] != "") {
        n = split(comment_of[name], lines, "\n\n+")
        put_paragraphs(lines, 1, n)
    }
    if (!together)
        put(".Bd -literal -offset indent")
    n = split(text_of[name], lines, "\n")
    for (i = 1; i < n; i++) {
        lines[i] = plain(lines[i])
        gsub(/-/, "\\-", lines[i])
        put(lines[i])
    }
}

function put_types(header,    i, name, open) {
    open = 0
    for (i = 1; i <= entries[header]; i++) {
        name = entry[header, i]
        if (kind_of[name] == "function")
            continue
        if (open && comment_of[name] != "")
            put(".Ed\n.Pp")
        else if (!open)
            put(".Sh TYPES AND CONSTANTS")
        put_declaration(name, open && comment_of[name] == "")
        open = 1
    }
    if (open)
        put(".Ed")
}

function put_functions(header,    i, name, n, k, list) {
    if (!functions[header])
        return
    if (subject == "rlock")
        put(".Ss rlock/" header)
    put(".Bl -tag -width Ds")
    for (i = 1; i <= entries[header]; i++) {
        name = entry[header, i]
        if (kind_of[name] != "function")
            continue
        n = split(name shares[name], list, " ")
        for (k = 1; k <= n; k++)
            list[k] = "Xr " list[k] " 3"
        name = list[1]
        for (k = 2; k <= n; k++)
            name = name " , " list[k]
        put(".It " name)
        put_text(gist(comment_of[entry[header, i]]))
    }
    put(".El")
}

# Those whose name is no page by itself.
function type_names(header,    i, name, all) {
    all = ""
    for (i = 1; i <= entries[header]; i++) {
        name = entry[header, i]
        if (kind_of[name] == "type" && name != "rlock" ||
            kind_of[name] == "macro" && text_of[name] ~ /^#define [A-Z_]+\(/)
            all = all " " name
    }
    return all
}

function put_header(header,    n, i, list, name) {
    name = page_of_header(header)
    put_top(name, type_names(header), top[header])
    put(".Sh DESCRIPTION")
    n = split(top[header], list, "\n\n+")
    put_paragraphs(list, 1, n)
    put_types(header)
    if (functions[header] || name == "rlock")
        put(".Sh FUNCTIONS")
    for (i = 1; i <= n_headers; i++) {
        if (headers[i] == header || name == "rlock")
            put_functions(headers[i])
    }
    split("", seen)
    for (i = 1; i <= n_headers; i++)
        seen[page_of_header(headers[i])]
    put_see_also("")
    close(page)
    put_links(name, type_names(header))
}

BEGIN {
    for (arg = 1; arg < ARGC; arg++)
        read_header(ARGV[arg])
    read_statuses()
    for (arg = 1; arg <= n_headers; arg++) {
        put_header(headers[arg])
        for (k = 1; k <= entries[headers[arg]]; k++) {
            if (kind_of[entry[headers[arg], k]] == "function")
                put_function(entry[headers[arg], k], headers[arg])
        }
    }
    exit failed
}
