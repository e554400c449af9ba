"""A place: one small mistake that could stand in a source file.

A place knows its file, function and operator, the edits that make the mistake,
and the words of its lines before and after. Its id is made of these words, so it
stays the same while other lines come and go.
"""
import hashlib
import re


class Token:
    """A word of a source: its kind (name, number, string, op), text and offsets."""
    __slots__ = ('kind', 'text', 'start', 'end')

    def __init__(self, kind, text, start, end):
        self.kind, self.text, self.start, self.end = kind, text, start, end

    def __repr__(self):
        return self.text


def tokenize(pattern, text):
    """Tokens of the named groups; what is in the group 'skip' is left out."""
    found = []
    for m in pattern.finditer(text):
        if m.lastgroup != 'skip':
            found.append(Token(m.lastgroup, m.group(), m.start(), m.end()))
    return found


def match_brackets(tokens, brackets):
    """For each opening bracket's index that of its closing one, and back."""
    match, stack = {}, []
    closing = {close: open_ for open_, close in brackets.items()}
    for i, t in enumerate(tokens):
        if t.kind != 'op':
            continue
        if t.text in brackets:
            stack.append(i)
        elif t.text in closing and stack and \
                tokens[stack[-1]].text == closing[t.text]:
            match[i] = stack.pop()
            match[match[i]] = i
    return match


def one_blank(text):
    return re.sub(r'\s+', ' ', text).strip()


class Place:
    def __init__(self, path, function, operator, edits):
        self.path, self.function, self.operator = path, function, operator
        self.edits = sorted(edits)
        self.line = self.before = self.after = self.id = None

    @property
    def folder(self):
        parts = self.path.split('/')
        return 'lua' if parts[0] == 'lua' else parts[1]

    def apply(self, text):
        for start, end, new in reversed(self.edits):
            text = text[:start] + new + text[end:]
        return text

    def read_words(self, text):
        """Line, before and after, of the file's text."""
        first, last = self.edits[0][0], self.edits[-1][1]
        self.line = text.count('\n', 0, first) + 1
        begin = text.rfind('\n', 0, first) + 1
        end = text.find('\n', last)
        end = len(text) if end < 0 else end
        self.before = one_blank(text[begin:end])
        grown = sum(len(new) - (e - s) for s, e, new in self.edits)
        self.after = one_blank(self.apply(text)[begin:end + grown])

    def words(self):
        return (self.path, self.function, self.operator, self.before, self.after)

    def __str__(self):
        return '%s %s:%d: %s: %s: %s  ->  %s' % (
            self.id, self.path, self.line, self.function, self.operator,
            self.before, self.after)


def name_places(places, text):
    """Gives each its words and id; of two with the same edits one is kept."""
    kept, seen, same = [], set(), {}
    for p in sorted(places, key=lambda p: p.edits):
        result = tuple(p.edits)
        if result in seen:
            continue
        seen.add(result)
        p.read_words(text)
        nth = same[p.words()] = same.get(p.words(), 0) + 1
        words = '\0'.join(p.words() + (str(nth),))
        p.id = hashlib.sha1(words.encode()).hexdigest()[:8]
        kept.append(p)
    return kept
