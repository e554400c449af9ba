"""same.txt: mistakes that change nothing which anybody is promised.

A row is four lines: file, function and operator; the words as they are; as they
become; a reason, which begins with one of REASONS. Rows are found by their words.
"""
REASONS = ('boundary', 'faster', 'dead', 'room', 'elsewhere')


class Row:
    def __init__(self, words, why, line):
        self.words, self.why, self.line = words, why, line


def read(path):
    """Rows by their words, and what is wrong with the file."""
    rows, wrong, block = {}, [], []
    with open(path) as f:
        lines = [line.rstrip('\n') for line in f] + ['']
    for number, line in enumerate(lines, 1):
        if line.startswith('#'):
            continue
        if line.strip():
            block.append(line.strip())
            continue
        if block:
            row = row_of(block, number - len(block))
            if row is None or row.words in rows:
                wrong.append('same.txt:%d: %s' % (
                    number - len(block),
                    'twice' if row else 'not four lines with one of the reasons'))
            else:
                rows[row.words] = row
        block = []
    return rows, wrong


def row_of(block, line):
    if len(block) != 4 or len(block[0].split(None, 2)) != 3:
        return None
    reason, colon, text = block[3].partition(':')
    if reason not in REASONS or not colon or not text.strip():
        return None
    path, function, operator = block[0].split(None, 2)
    after = '' if block[2] == '(nothing)' else block[2]
    return Row((path, function, operator, block[1], after), block[3], line)
