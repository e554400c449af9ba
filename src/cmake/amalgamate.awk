# awk -v version=V -v output=FILE -v path=DIR:DIR -v tls=1 -f amalgamate.awk \
#     LICENSE SOURCE.c...
#
# Writes the sources into one file. Each header of ours is put in where it is
# first included; those of others, <rlock/...> too, stay included.
#
# A source file is a namespace: what is static in it, and the types that it
# makes, may have names that other files, or headers that other files include,
# use as well. So all of these get the file's name in front. Members of structs
# keep their names, and a file's macros end with it.
#
# It knows as much of C as it needs for that, read as tokens: T[i] is the text
# of token i, K[i] its kind: i(dentifier), p(unctuation), or o(ther): blanks,
# comments, numbers, strings, whole lines of the preprocessor.

function fail(why) {
    print "amalgamate.awk: " why >"/dev/stderr"
    failed = 1
    exit 1
}

# --- Tokens -----------------------------------------------------------------

function token(kind, text) {
    K[++n] = kind
    T[n] = text
}

# The rest of a line, inside a comment that has begun or outside of one.
function tokens_of(s,    end) {
    while (s != "") {
        if (in_comment) {
            end = index(s, "*/")
            in_comment = !end
            end = end ? end + 1 : length(s)
            token("o", substr(s, 1, end))
            s = substr(s, end + 1)
            continue
        }
        if (match(s, /^[ \t]+/) || match(s, /^\/\/.*/) ||
            match(s, /^"([^"\\]|\\.)*"/) || match(s, /^'([^'\\]|\\.)*'/) ||
            match(s, /^[0-9][0-9A-Za-z_.]*/)) {
            token("o", substr(s, 1, RLENGTH))
        } else if (match(s, /^\/\*/)) {
            in_comment = 1
            token("o", "/*")
        } else if (match(s, /^[A-Za-z_][A-Za-z_0-9]*/)) {
            token("i", substr(s, 1, RLENGTH))
        } else {
            match(s, /^(->|.)/)
            token("p", substr(s, 1, RLENGTH))
        }
        s = substr(s, RLENGTH + 1)
    }
    token("o", "\n")
}

# Lines of the preprocessor are no part of the grammar, so they are of a kind
# of their own until the names are known.
function read_tokens(file,    line, from, i, directive, status) {
    n = in_comment = directive = 0
    while ((status = (getline line <file)) > 0) {
        from = n + 1
        if (!directive && !in_comment && line ~ /^[ \t]*#/)
            directive = 1
        tokens_of(line)
        for (i = from; directive && i <= n; i++)
            K[i] = toupper(K[i])
        if (line !~ /\\$/)
            directive = 0
    }
    close(file)
    if (status < 0)
        fail("cannot read " file)
    K[n + 1] = T[n + 1] = ""
}

# Fills C[1..c] with the indices of the tokens that the grammar is made of.
function pick_code(    i) {
    c = 0
    for (i = 1; i <= n; i++) {
        if (K[i] == "i" || K[i] == "p")
            C[++c] = i
    }
    C[0] = C[c + 1] = C[c + 2] = n + 1
}
function code(i) {
    return i < 0 ? "" : T[C[i]]
}

# --- Names ------------------------------------------------------------------

# Those with our prefixes are shared, and the compiler's are nobody's.
function own(name) {
    if (name !~ /^(rl_|RL_|rlock|RLOCK|_)/)
        names[name] = 1
}

function is_word(i) {
    return K[C[i]] == "i"
}

# A struct, union or enum whose braces open at i.
function opens_type(i) {
    return code(i - 1) ~ /^(struct|union|enum)$/ ||
        code(i - 2) ~ /^(struct|union|enum)$/
}

# The index of the bracket that closes the one at i.
function closing(i,    depth) {
    for (depth = 0; i <= c; i++) {
        if (code(i) ~ /^[({[]$/)
            depth++
        else if (code(i) ~ /^[]})]$/ && --depth == 0)
            return i
    }
    fail("a bracket is not closed")
}

function own_constants(from, to) {
    for (; from < to; from++) {
        if (is_word(from) && code(from - 1) ~ /^[{,]$/)
            own(code(from))
    }
}

# A macro that stands for a type, such as LIST_HEAD(, entry).
function makes_type(i,    end) {
    if (code(i + 1) != "(")
        return 0
    end = closing(i + 1)
    return is_word(end + 1) && code(end + 1) !~ /^(__|RL_)/
}

# One declaration at the top level, from i on; returns what follows it.
function declaration(i,    ours, named, begin) {
    ours = named = 0
    for (begin = i; i <= c; i++) {
        if (code(i) == ";")
            return i + 1
        if (code(i) ~ /^(static|typedef)$/)
            ours = 1
        else if (code(i) == "{" && opens_type(i)) {
            if (is_word(i - 1) && code(i - 1) !~ /^(struct|union|enum)$/)
                own(code(i - 1))
            if (code(i - 1) == "enum" || code(i - 2) == "enum")
                own_constants(i + 1, closing(i))
            i = closing(i)
        } else if (code(i) == "{") {
            begin = code(i - 1)
            i = closing(i)
            if (begin != "=")
                return i + 1
        } else if (code(i) == "(" && code(i + 1) == "*" && ours && !named) {
            own(code(i + 2))
            named = 1
            i = closing(i)
        } else if (code(i) ~ /^[([]$/) {
            i = closing(i)
        } else if (ours && is_word(i) && makes_type(i)) {
            i = closing(i + 1)
        } else if (ours && is_word(i) && code(i + 1) ~ /^[[(;,=]$/ &&
                   code(i) !~ /^(__|RL_)/) {
            if (!named || code(i - 1) ~ /^[,*]$/)
                own(code(i))
            named = 1
        }
    }
    return i
}

function find_names(    i) {
    split("", names)
    for (i = 1; i <= c;)
        i = declaration(i)
}

# --- Which tokens are members -----------------------------------------------

# Macros of ours whose last argument is a member's name.
function takes_member(name) {
    return name ~ /^(offsetof|RL_CONTAINER)$/
}

function find_members(    i, depth, struct, parens) {
    split("", member)
    depth = parens = 0
    struct[0] = 0
    for (i = 1; i <= c; i++) {
        if (code(i) == "{") {
            struct[++depth] = opens_type(i) && code(i - 1) != "enum" &&
                code(i - 2) != "enum"
        } else if (code(i) == "}") {
            depth--
        } else if (code(i) == "(") {
            parens++
            if (takes_member(code(i - 1)))
                member[C[closing(i) - 1]] = 1
        } else if (code(i) == ")") {
            parens--
        } else if (is_word(i) && (code(i - 1) ~ /^(\.|->)$/ ||
                   (struct[depth] && is_declarator(i, parens)))) {
            member[C[i]] = 1
        }
    }
}

function is_declarator(i, parens) {
    if (parens)
        return code(i - 1) == "*" && code(i - 2) == "("
    return code(i + 1) ~ /^[;,:[]$/ || code(i + 1) ~ /^RL_/
}

# --- Output -----------------------------------------------------------------

function put(text) {
    printf "%s", text >output
}

# Where a header of ours lies; empty: it is somebody else's.
function find_header(name, beside,    i, dirs, count, file, line) {
    count = split(beside ":" path, dirs, ":")
    for (i = 1; i <= count; i++) {
        file = dirs[i] "/" name
        if ((getline line <file) >= 0) {
            close(file)
            return file
        }
    }
    return ""
}

function folder(file) {
    sub(/\/[^\/]*$/, "", file)
    return file
}

# The header that a line includes, if it is one of ours.
function header_of(line, file) {
    if (line !~ /^[ \t]*#[ \t]*include[ \t]*"/)
        return ""
    gsub(/^[^"]*"|".*$/, "", line)
    return find_header(line, folder(file))
}

function put_header(file,    line, header) {
    if (file in seen)
        return
    seen[file] = 1
    while ((getline line <file) > 0) {
        header = header_of(line, file)
        if (header != "")
            put_header(header)
        else
            put(line "\n")
    }
    close(file)
}

function renamed(i) {
    return tolower(K[i]) == "i" && T[i] in names && !(i in member) &&
        !(K[i] == "I" && T[i - 1] ~ /^(\.|->|#)$/)
}

function put_line(prefix, from, to,    i) {
    for (i = from; i <= to; i++)
        put(renamed(i) ? prefix T[i] : T[i])
}

function text_of(from, to,    i, s) {
    s = ""
    for (i = from; i < to; i++)
        s = s T[i]
    return s
}

# The macro that a line defines, or nothing.
function macro_of(line) {
    if (line !~ /^[ \t]*#[ \t]*define[ \t]/)
        return ""
    sub(/^[ \t]*#[ \t]*define[ \t]+/, "", line)
    match(line, /^[A-Za-z_][A-Za-z_0-9]*/)
    return substr(line, 1, RLENGTH)
}

function put_source(file,    prefix, i, from, line, header, macros, name) {
    prefix = file
    sub(/\.c$/, "", prefix)
    sub(/.*\/(src|generated)\//, "", prefix)
    gsub(/[^A-Za-z0-9]/, "_", prefix)
    put("\n/* ---- " prefix " ---- */\n\n")
    prefix = prefix "__"
    split("", macros)
    from = 1
    for (i = 1; i <= n; i++) {
        if (T[i] != "\n")
            continue
        if (K[from] ~ /^[A-Z]$/) {
            line = text_of(from, i)
            header = header_of(line, file)
            if (macro_of(line) != "")
                macros[macro_of(line)] = 1
        } else {
            header = ""
        }
        if (header != "")
            put_header(header)
        else
            put_line(prefix, from, i)
        from = i + 1
    }
    for (name in macros)
        put("#undef " name "\n")
}

BEGIN {
    put("/*\n * rlock " version " in one file, generated from its sources" \
        " for the hiredis that it\n * was configured with." \
        " Needs the folder rlock/ of headers, hiredis, libuuid" \
        (tls + 0 ? ",\n * OpenSSL and" : " and\n *") " POSIX threads:\n *\n" \
        " *     cc -c -I. rlock.c\n" \
        " *     cc program.c rlock.o -lhiredis -luuid" \
        (tls + 0 ? " -lssl -lcrypto" : "") (atomic + 0 ? " -latomic" : "") \
        " -pthread\n *\n")
    while ((getline line <ARGV[1]) > 0)
        put(" *" (line == "" ? "" : " " line) "\n")
    put(" */\n#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n")
    # Seen across files, a counted object looks freed after each "unref".
    put("#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12\n" \
        "#pragma GCC diagnostic ignored \"-Wuse-after-free\"\n#endif\n")
    for (arg = 2; arg < ARGC; arg++) {
        read_tokens(ARGV[arg])
        pick_code()
        find_names()
        find_members()
        put_source(ARGV[arg])
    }
    close(output)
    exit failed
}
