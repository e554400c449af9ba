"""Which program executes which line, as recorded by run.sh --all --record."""
import json
import os


class Reach:
    def __init__(self, folder, root):
        self.path, self.root = os.path.join(folder, 'reach.json'), root
        self.lines = {}
        if os.path.exists(self.path):
            with open(self.path) as f:
                self.lines = json.load(f)

    def is_known(self, path):
        return path in self.lines

    def programs(self, path, line):
        return {p for p, lines in self.lines[path].items() if line in lines}
