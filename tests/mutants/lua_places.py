"""The places in a Lua script, or in a file that scripts include.

Lua has no mark at a statement's end: one ends where a value is followed by a name,
or by a word that begins a statement.
"""
import re

from place import Place, match_brackets, name_places, tokenize

PATTERN = re.compile(r'''
    (?P<skip>\s+|--\[\[.*?\]\]|--[^\n]*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[\[.*?\]\])
  | (?P<number>\d(?:[eE][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>\.\.\.|\.\.|<=|>=|==|~=|.)
''', re.X | re.S)

EXCHANGED = {
    'compare': {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '~=', '~=': '=='},
    'logic': {'and': 'or', 'or': 'and'},
    'arithmetic': {'+': '-', '-': '+', '*': '/', '/': '*', 'min': 'max', 'max': 'min'},
    'constant': {'true': 'false', 'false': 'true'},
}
BEGINS = {'local', 'if', 'for', 'while', 'repeat', 'return', 'break', 'do', 'end',
          'else', 'elseif', 'until'}
WORDS = BEGINS | {'and', 'or', 'not', 'then', 'function', 'in', 'nil', 'true', 'false'}
VALUES = {')', ']', '}', '...', 'nil', 'true', 'false', 'end'}
BLOCKS = {'if', 'do', 'function', 'repeat'}


class File:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokenize(PATTERN, text)
        self.match = match_brackets(self.tokens, {'(': ')', '[': ']', '{': '}'})
        self.functions = [(len(self.tokens), '')]
        self.parameters, self.places = set(), []

    def note(self, i, operator, *edits):
        name = next(n for end, n in reversed(self.functions) if i < end)
        self.places.append(Place(self.path, name or 'script', operator, edits))

    def put(self, operator, first, last, new):
        self.note(first, operator,
                  (self.tokens[first].start, self.tokens[last].end, new))

    def around(self, operator, first, last, before, after):
        a, b = self.tokens[first].start, self.tokens[last].end
        self.note(first, operator, (a, a, before), (b, b, after))

    def text_at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def is_value(self, i):
        if i < 0:
            return False
        t = self.tokens[i]
        return t.kind in ('string', 'number') or t.text in VALUES or \
            t.kind == 'name' and t.text not in WORDS

    def begins_statement(self, i):
        """A name or word behind a value, or behind a word that opens a block."""
        t = self.tokens[i]
        if t.kind != 'name' or t.text in ('and', 'or', 'then', 'in'):
            return False
        return t.text in BEGINS or i == 0 or self.is_value(i - 1) or \
            self.text_at(i - 1) in ('then', 'else', 'do', 'repeat', ';')

    def end_of_statement(self, i):
        """The last token of the expression or call that begins at i."""
        i = self.match.get(i, i)
        while i + 1 < len(self.tokens) and not self.begins_statement(i + 1) and \
                self.text_at(i + 1) not in (')', ']', '}', ';'):
            i += 1
            if self.text_at(i) == 'function':
                i = self.end_of_block(i)
            elif self.text_at(i) in ('(', '[', '{'):
                i = self.match[i]
        return i

    def end_of_block(self, i):
        """`while` and `for` bring their `do`; a `repeat` ends with its `until`."""
        depth = 0
        while i < len(self.tokens):
            t = self.tokens[i]
            if t.kind == 'name' and t.text in BLOCKS:
                depth += 1
            elif t.kind == 'name' and t.text in ('end', 'until'):
                depth -= 1
                if depth == 0:
                    return i
            i += 1
        return i - 1

    def read(self):
        for i, t in enumerate(self.tokens):
            if t.text == 'function' and t.kind == 'name':
                self.read_function(i)
            elif t.text in ('if', 'elseif') and t.kind == 'name':
                self.read_if(i)
            elif t.text in ('while', 'until') and t.kind == 'name':
                self.condition(i + 1, self.end_of_condition(i + 1))
            elif t.text == 'not' and t.kind == 'name':
                self.put('negate', i, i, '')
            elif t.kind == 'number':
                self.number(i)
            elif t.kind == 'name' and t.text not in WORDS and \
                    self.begins_statement(i):
                self.read_simple(i)
            elif t.text == 'break':
                self.put('drop', i, i, '')
            if t.text == '(' and self.is_value(i - 1) and i not in self.parameters:
                self.arguments(i)
            self.exchange(i)
        return name_places(self.places, self.text)

    def read_function(self, i):
        open_ = i + 1
        while self.text_at(open_) != '(':
            open_ += 1
        self.parameters.add(open_)
        if open_ > i + 1:
            self.functions.append((self.end_of_block(i), self.text_at(open_ - 1)))
        at = self.tokens[self.match[open_]].end
        for value in ('', ' 0', ' true'):
            self.note(self.match[open_] + 1, 'early return',
                      (at, at, ' do return%s end' % value))

    def end_of_condition(self, i):
        """The last token before `then` or `do`, or of what stands behind `until`."""
        if self.text_at(i - 1) == 'until':
            return self.end_of_statement(i)
        while self.text_at(i + 1) not in ('then', 'do'):
            i += 1
        return i

    def read_if(self, i):
        last = self.end_of_condition(i + 1)
        then = last + 2
        returns = self.text_at(then) == 'return' and \
            self.text_at(self.end_of_statement(then + 1) + 1) == 'end'
        self.condition(i + 1, last)
        self.around('drop check' if returns else 'never',
                    i + 1, last, 'false and (', ')')
        if not returns:
            self.around('always', i + 1, last, 'true or (', ')')

    def condition(self, first, last):
        inside = {t.text for t in self.tokens[first:last + 1]}
        if inside & {'and', 'or'} or not (
                inside & {'==', '~='} or self.text_at(first) == 'not'):
            self.around('negate', first, last, 'not (', ')')

    def read_simple(self, i):
        """An assignment, or a call whose value is not used."""
        last = self.end_of_statement(i)
        self.put('drop', i, last, '')

    def exchange(self, i):
        t = self.tokens[i]
        if t.kind not in ('op', 'name'):
            return
        for operator, pairs in EXCHANGED.items():
            if t.text not in pairs or t.text in ('min', 'max') and \
                    self.text_at(i - 1) != '.':
                continue
            if t.text in '+-' and not self.is_value(i - 1):
                continue # a sign
            self.put(operator, i, i, pairs[t.text])

    def number(self, i):
        text = self.text_at(i)
        if not text.isdigit():
            return
        value = int(text)
        index = self.text_at(i - 1) == '[' and self.text_at(i + 1) == ']'
        operator = 'argument' if index else 'constant'
        self.put(operator, i, i, str(value + 1))
        if value > 1 or not index:
            self.put(operator, i, i, str(value - 1) if value else '(-1)')

    def arguments(self, open_):
        close, parts, first = self.match[open_], [], open_ + 1
        i = first
        while i < close:
            if self.text_at(i) == 'function':
                return
            if self.text_at(i) in ('(', '[', '{'):
                i = self.match[i]
            elif self.text_at(i) == ',':
                parts.append((first, i - 1))
                first = i + 1
            i += 1
        parts.append((first, close - 1))
        # Of two numbers the smaller is the same, whichever comes first.
        if self.text_at(open_ - 1) in ('min', 'max'):
            return
        # A command's name is no argument that one could confuse with another.
        if self.text_at(first if len(parts) == 1 else parts[0][0]).strip('\'"') \
                .isupper():
            parts = parts[1:]
        for (a, b), (c, d) in zip(parts, parts[1:]):
            left, right = self.slice(a, b), self.slice(c, d)
            if left != right and '...' not in (left, right):
                self.note(a, 'argument',
                          (self.tokens[a].start, self.tokens[b].end, right),
                          (self.tokens[c].start, self.tokens[d].end, left))

    def slice(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]


def find(path, text):
    return File(path, text).read()
