"""Which programs of server and fault may notice a mistake in a line.

Those that execute it, if it is known (reach.py); else those whose name has the
file's subject, and those that programs.txt names for its folder or file.
"""
import os
import re


def words_of(path):
    name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.basename(os.path.dirname(path))
    return set(re.split(r'[_/]', name)) | ({folder} if path[:4] == 'lua/' else set())


def read_table(path):
    """Rows `hold/room  server/waiting fault/room`."""
    table = {}
    with open(path) as f:
        for line in f:
            row = line.split('#')[0].split()
            if row:
                table.setdefault(row[0], []).extend(row[1:])
    return table


class Choice:
    def __init__(self, folder, programs, times, reach):
        self.all, self.times, self.reach = programs, times, reach
        self.table = read_table(os.path.join(folder, 'programs.txt'))

    def of_table(self, place):
        path = re.sub(r'^src/|\.\w+$', '', place.path)
        found = list(self.table.get(path, []))
        while '/' in path:
            path = path.rsplit('/', 1)[0]
            found += self.table.get(path, [])
        return [p for p in found if p in self.all]

    def by_subject(self, place):
        subject = words_of(place.path)
        return [p for p in self.all
                if any(w.startswith(s) or s.startswith(w) and len(w) > 3
                       for w in p.split('/')[1].split('_')
                       for s in subject if len(s) > 3)]

    def seconds(self, name):
        """As it took when it was quickest; until that is known, a guess."""
        return self.times.get(name, 60 if name in self.table['slow'] else 6)

    def quick_first(self, programs):
        return sorted(programs, key=self.seconds)

    def may_reach(self, name, place):
        return name == 'sim' or not self.reach.is_known(place.path) or \
            name in self.reach.programs(place.path, place.line)

    def programs(self, place, left_out):
        named = self.of_table(place)
        about = [p for p in self.by_subject(place) if p not in named]
        chosen = named + self.quick_first(about)
        if self.reach.is_known(place.path):
            reaching = self.reach.programs(place.path, place.line)
            chosen = [p for p in chosen if p in reaching]
            chosen += self.quick_first(reaching - set(chosen))
        return [p for p in dict.fromkeys(chosen) if p not in left_out]

    def note(self, place):
        if self.reach.is_known(place.path) and \
                not self.reach.programs(place.path, place.line):
            return 'no suite that tells what it executes has executed this line'
        return ''
