"""The places in a C file.

A tokenizer and a parser of statements, as far as they are needed: function bodies,
conditions, expression statements. It relies on the format of this project: a binary
operator has blanks on both sides, a pointer's star and a sign have not.
"""
import re

from place import Place, match_brackets, name_places, tokenize

PATTERN = re.compile(r'''
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|(?m:^[ \t]*\#(?:\\.|[^\\\n])*))
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\.\.\.|.)
''', re.X | re.S)

EXCHANGED = {
    'compare': {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '=='},
    'logic': {'&&': '||', '||': '&&'},
    'arithmetic': {'+': '-', '-': '+', '*': '/', '/': '*', '+=': '-=', '-=': '+=',
                   'rl_min': 'rl_max', 'rl_max': 'rl_min'},
    'constant': {'true': 'false', 'false': 'true'},
}
ASSIGNS = {'=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>='}
TYPES = {'const', 'static', 'struct', 'enum', 'union', 'unsigned', 'signed', 'int',
         'long', 'short', 'char', 'bool', 'void', 'double', 'float', 'volatile',
         'size_t', 'ssize_t', '_Atomic', '_Thread_local'}
# What these answer is the same whichever argument comes first; of the others it is
# when one only asks whether it is 0.
SYMMETRIC = {'rl_min', 'rl_max', 'calloc'}
COMPARING = {'strcmp', 'strncmp', 'memcmp', 'strcasecmp', 'strncasecmp'}
NO_CALL = {'if', 'while', 'for', 'switch', 'return', 'sizeof', 'case', '_Generic'}
NOT_RETURNED = {'static', 'inline', 'const', 'extern'}
LOWER = ASSIGNS | {'?', ':', ',', '(', '[', '{', '}', ';', 'return'}


class File:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.tokens = tokenize(PATTERN, text)
        self.match = match_brackets(self.tokens, {'(': ')', '[': ']', '{': '}'})
        self.places, self.function = [], ''

    # --- what is noted ---------------------------------------------------------

    def note(self, operator, *edits):
        self.places.append(Place(self.path, self.function, operator, edits))

    def put(self, operator, first, last, new):
        """Instead of the tokens first to last: new."""
        self.note(operator, (self.tokens[first].start, self.tokens[last].end, new))

    def around(self, operator, first, last, before, after):
        a, b = self.tokens[first].start, self.tokens[last].end
        self.note(operator, (a, a, before), (b, b, after))

    def is_op(self, i, *texts):
        return i < len(self.tokens) and self.tokens[i].text in texts and \
            self.tokens[i].kind in ('op', 'name')

    # --- functions --------------------------------------------------------------

    def read(self):
        i = begin = 0
        while i < len(self.tokens):
            t = self.tokens[i].text
            if t == '{' and i in self.match:
                if self.is_function(begin, i):
                    self.read_function(begin, i)
                i = begin = self.match[i] + 1
                continue
            if t in '([' and i in self.match:
                i = self.match[i]
            elif t == ';':
                begin = i + 1
            i += 1
        return name_places(self.places, self.text)

    def is_function(self, begin, brace):
        head = [t.text for t in self.tokens[begin:brace]]
        return '(' in head and '=' not in head and head[0] != 'typedef'

    def read_function(self, begin, brace):
        name = next(i for i in range(begin, brace) if self.is_op(i + 1, '('))
        self.function = self.tokens[name].text
        kind = [t.text for t in self.tokens[begin:name]
                if t.text not in NOT_RETURNED]
        if '_Noreturn' not in kind:
            for value in returned(kind):
                at = self.tokens[brace].end
                self.note('early return', (at, at, ' return%s;' % value))
        self.block(brace)

    # --- statements: each returns the index behind it -----------------------------

    def block(self, brace):
        i = brace + 1
        while i < self.match[brace]:
            i = self.statement(i)
        return self.match[brace] + 1

    def statement(self, i):
        t = self.tokens[i]
        if t.text == '{':
            return self.block(i)
        read = getattr(self, 'read_' + t.text, None)
        if t.kind == 'name' and read and t.text in (
                'if', 'while', 'for', 'do', 'switch', 'case', 'break', 'continue'):
            return read(i)
        if t.kind == 'name' and self.is_op(i + 1, ':'):
            return i + 2
        if t.kind == 'name' and self.is_op(i + 1, '(') and t.text not in NO_CALL \
                and self.is_op(self.match[i + 1] + 1, '{'):
            return self.statement(self.match[i + 1] + 1)
        return self.simple(i)

    def end_of(self, i, *ends):
        while self.tokens[i].text not in ends:
            i = self.match[i] if self.tokens[i].text in ('(', '[', '{') else i
            i += 1
        return i

    def simple(self, i):
        end = self.end_of(i, ';')
        if self.tokens[i].text in ('return', 'goto'):
            self.expression(i + 1, end)
        elif self.is_declaration(i):
            self.declaration(i, end)
        elif i < end:
            self.expression(i, end)
            if self.can_be_dropped(i, end):
                self.put('drop', i, end - 1, '(void)0')
        return end + 1

    def is_declaration(self, i):
        t = self.tokens[i]
        if t.kind != 'name':
            return False
        if t.text in TYPES:
            return True
        i += 1
        while self.is_op(i, '*', 'const'):
            i += 1
        return self.tokens[i].kind == 'name'

    def declaration(self, i, end):
        """What it is initialized with; the size of an array is no constant."""
        while i < end:
            if self.tokens[i].text in ('(', '[', '{'):
                i = self.match[i]
            elif self.tokens[i].text == '=':
                last = i + 1
                while last < end and self.tokens[last].text != ',':
                    last = self.match[last] if self.tokens[last].text in \
                        ('(', '[', '{') else last
                    last += 1
                self.expression(i + 1, last)
                i = last
            i += 1

    def can_be_dropped(self, i, end):
        if self.tokens[i].text == '(' and self.is_op(i + 1, 'void'):
            return self.is_op(end - 1, ')') and end - 1 > self.match[i]
        while i < end:
            t = self.tokens[i].text
            if t in ASSIGNS or t in ('++', '--'):
                return True
            if t in ('(', '['):
                i = self.match[i]
            i += 1
        return self.tokens[end - 1].text == ')'

    def read_break(self, i):
        falls = self.is_op(i + 2, 'case', 'default')
        self.put('drop', i, i, '__attribute__((fallthrough))' if falls else '(void)0')
        return i + 2

    def read_continue(self, i):
        self.put('drop', i, i, '(void)0')
        return i + 2

    def read_case(self, i):
        return self.end_of(i, ':') + 1

    def read_if(self, i):
        close = self.match[i + 1]
        then = close + 1
        after = self.statement(then)
        only_returns = self.only_returns(then) and not self.is_op(after, 'else')
        self.condition(i + 2, close)
        self.around('drop check' if only_returns else 'never',
                    i + 2, close - 1, '0 && (', ')')
        if not only_returns:
            self.around('always', i + 2, close - 1, '1 || (', ')')
        return self.statement(after + 1) if self.is_op(after, 'else') else after

    def only_returns(self, i):
        i += self.tokens[i].text == '{'
        return self.tokens[i].text == 'return'

    def read_while(self, i):
        close = self.match[i + 1]
        self.condition(i + 2, close)
        return self.statement(close + 1)

    def read_do(self, i):
        i = self.statement(i + 1)
        close = self.match[i + 1]
        self.condition(i + 2, close)
        return close + 2

    def read_switch(self, i):
        close = self.match[i + 1]
        self.expression(i + 2, close)
        return self.statement(close + 1)

    def read_for(self, i):
        close = self.match[i + 1]
        first = self.end_of(i + 2, ';')
        second = self.end_of(first + 1, ';')
        if self.is_declaration(i + 2):
            self.declaration(i + 2, first)
        else:
            self.expression(i + 2, first)
        if second > first + 1:
            self.condition(first + 1, second)
        self.expression(second + 1, close)
        return self.statement(close + 1)

    # --- expressions ----------------------------------------------------------------

    def condition(self, begin, end):
        """A lone comparison, or one behind a `!`, is negated by another operator."""
        self.expression(begin, end)
        inside = {t.text for t in self.tokens[begin:end]}
        lone = not inside & {'&&', '||'} and (
            inside & {'==', '!='} or self.tokens[begin].text == '!')
        if not lone and end - begin > 1 or self.tokens[begin].kind == 'name' and \
                self.tokens[begin].text not in ('true', 'false') and not lone:
            self.around('negate', begin, end - 1, '!(', ')')

    def expression(self, begin, end):
        for i in range(begin, end):
            t = self.tokens[i]
            if t.kind == 'number':
                self.number(i)
            elif t.text == '!':
                self.put('negate', i, i, '')
            elif t.text == '?':
                self.choice(begin, i)
            elif t.text == '(' and i > begin and self.is_callee(i - 1):
                self.arguments(i)
            else:
                self.exchange(i)

    def exchange(self, i):
        t = self.tokens[i]
        for operator, pairs in EXCHANGED.items():
            if t.text not in pairs or t.kind == 'string':
                continue
            binary = self.text[t.start - 1].isspace() and self.text[t.end].isspace()
            if t.kind == 'name' or binary:
                self.put(operator, i, i, pairs[t.text])

    def number(self, i):
        t = self.tokens[i]
        m = re.fullmatch(r'(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)', t.text)
        if not m:
            return
        value, suffix = int(m[1], 16 if m[1][:2] in ('0x', '0X') else 10), m[2]
        index = self.is_op(i - 1, '[') and self.is_op(i + 1, ']')
        operator = 'argument' if index else 'constant'
        self.put(operator, i, i, '%d%s' % (value + 1, suffix))
        if value > 0:
            self.put(operator, i, i, '%d%s' % (value - 1, suffix))
        elif not index:
            self.put(operator, i, i, '(-1)')

    def choice(self, begin, question):
        """The condition of a ?: reaches back to what binds less."""
        i = question - 1
        while i >= begin and self.tokens[i].text not in LOWER:
            if self.tokens[i].text in (')', ']'):
                i = self.match[i]
            i -= 1
        if i + 1 < question:
            self.around('negate', i + 1, question - 1, '!(', ')')

    def is_callee(self, i):
        t = self.tokens[i]
        return t.kind == 'name' and t.text not in NO_CALL and t.text not in TYPES

    def arguments(self, open_):
        """Neighbours are exchanged; the compiler says which are of one type."""
        close = self.match[open_]
        parts, first = [], open_ + 1
        for i in self.commas(open_ + 1, close):
            parts.append((first, i - 1))
            first = i + 1
        parts.append((first, close - 1))
        if self.is_symmetric(open_):
            parts = parts[1:]
        for (a, b), (c, d) in zip(parts, parts[1:]):
            left, right = self.slice(a, b), self.slice(c, d)
            if left != right:
                self.note('argument',
                          (self.tokens[a].start, self.tokens[b].end, right),
                          (self.tokens[c].start, self.tokens[d].end, left))

    def is_symmetric(self, open_):
        callee, behind = self.tokens[open_ - 1].text, self.match[open_] + 1
        return callee in SYMMETRIC or callee in COMPARING and (
            self.is_op(behind, '==') or self.is_op(behind, '!=') or
            self.is_op(open_ - 2, '!'))

    def commas(self, i, end):
        while i < end:
            if self.tokens[i].text in ('(', '[', '{'):
                i = self.match[i]
            elif self.tokens[i].text == ',':
                yield i
            i += 1

    def slice(self, first, last):
        return self.text[self.tokens[first].start:self.tokens[last].end]


def returned(kind):
    if kind == ['void']:
        return ['']
    if kind == ['bool']:
        return [' false', ' true']
    return [' (%s){0}' % ' '.join(kind)]


def find(path, text):
    return File(path, text).read()
