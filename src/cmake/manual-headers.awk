# Reads the public headers for manual.awk: what each declares, and the comment that
# stands above it.
#
#   headers[1..n_headers]      their names, in order
#   top[HEADER]                the comment at its top
#   entry[HEADER, 1..entries[HEADER]]
#                              what it declares, and of that
#   kind_of[NAME]              "function", "type" or "macro"
#   text_of[NAME]              as it stands there; all prototypes below one comment
#   comment_of[NAME]           above it, without its frame
#   shares[NAME]               the other functions below that comment
#   page_of[FUNCTION]          the first function below its comment
#   functions[HEADER]          how many have a comment
#   means[STATUS]              what base.h says of it

function fail(why) {
    print "manual.awk: " why >"/dev/stderr"
    failed = 1
    exit 1
}

# The comment that begins with this line, as lines without what frames them.
function comment_from(line, file,    text, end) {
    sub(/^\/\*/, "  ", line)
    text = ""
    for (;;) {
        end = index(line, "*/")
        if (end)
            line = substr(line, 1, end - 1)
        sub(/^ \*/, "  ", line)
        sub(/^   /, "", line)
        sub(/ +$/, "", line)
        text = text line "\n"
        if (end)
            break
        if ((getline line <file) <= 0)
            fail(file ": a comment has no end")
    }
    gsub(/^\n+|\n+$/, "", text)
    return text
}

# What begins with this line, up to the ; that is in no braces, or of a macro up
# to the first line that goes not on.
function declaration_from(line, file,    macro, text, code, depth, more) {
    macro = line ~ /^#/
    text = ""
    depth = 0
    for (;;) {
        text = text line "\n"
        if (macro) {
            more = line ~ /\\$/
        } else {
            code = line
            gsub(/\/\*.*\*\//, "", code)
            depth += gsub(/[{]/, "", code) - gsub(/[}]/, "", code)
            more = depth > 0 || code !~ /;[ \t]*(\/\*.*)?$/
        }
        if (!more)
            return text
        if ((getline line <file) <= 0)
            fail(file ": a declaration has no end")
    }
}

function new_entry(kind, name, text) {
    entry[header, ++entries[header]] = name
    kind_of[name] = kind
    text_of[name] = text
    comment_of[name] = comment
}

# A prototype: the first below a comment has the page.
function new_function(text,    name) {
    match(text, /rlock_[a-z0-9_]+\(/)
    name = substr(text, RSTART, RLENGTH - 1)
    if (comment != "") {
        first = name
        functions[header]++
        new_entry("function", name, text)
    } else if (first == "") {
        fail(header ": " name "() has no comment")
    } else {
        text_of[first] = text_of[first] text
        shares[first] = shares[first] " " name
    }
    page_of[name] = first
}

function new_type(text,    name) {
    if (text !~ /^typedef/)
        return
    name = text
    if (match(text, /^typedef [^{;]*[ *]rlock_[a-z0-9_]+\(/))
        name = substr(text, 1, RLENGTH - 1)
    sub(/;[^;]*$/, "", name)
    sub(/.*[^a-z0-9_]/, "", name)
    new_entry("type", name, text)
}

# What is a part of how something else is done ends with _; below an #if only
# what has a comment is of concern.
function new_macro(text, depth,    name) {
    name = text
    sub(/^#define /, "", name)
    sub(/[^A-Z0-9_].*/, "", name)
    if (name ~ /_H?$/ || (depth > 1 && comment == ""))
        return
    if (text ~ /\\\n/)
        sub(/ *\\\n.*/, "\n", text)
    new_entry("macro", name, text)
}

function read_header(file,    line, depth) {
    header = file
    sub(/.*\//, "", header)
    headers[++n_headers] = header
    comment = first = ""
    depth = 0
    while ((getline line <file) > 0) {
        if (line ~ /^\/\*/) {
            comment = comment_from(line, file)
            first = ""
            if (!(header in top))
                top[header] = comment
            continue
        }
        if (line ~ /^RLOCK_API/) {
            new_function(declaration_from(line, file))
        } else if (line ~ /^(typedef|struct)/) {
            new_type(declaration_from(line, file))
        } else if (line ~ /^#define/) {
            new_macro(declaration_from(line, file), depth)
        } else if (line ~ /^static inline/) {
            while (line !~ /^[}]/ && (getline line <file) > 0)
                continue
        } else if (line ~ /^#if/) {
            depth++
        } else if (line ~ /^#endif/) {
            depth--
        } else if (line == "") {
            first = ""
        }
        comment = ""
    }
    close(file)
}

# What base.h says of each status.
function read_statuses(    n, i, lines, name) {
    n = split(text_of["rlock_status"], lines, "\n")
    for (i = 1; i <= n; i++) {
        if (lines[i] !~ /RLOCK_.*\/\*.*\*\//)
            continue
        name = lines[i]
        gsub(/^ +| *=.*/, "", name)
        gsub(/.*\/\* *| *\*\/.*/, "", lines[i])
        means[name] = lines[i]
    }
}
