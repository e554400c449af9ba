"""The structs and numbers of the module are those of the headers."""
import ctypes
import os
import re
import subprocess
import tempfile
import unittest

import rlock
from rlock import _library as library

HEADERS = os.environ.get("RLOCK_INCLUDE")
COMPILER = os.environ.get("RLOCK_CC", "cc").split(";")

STRUCTS = {
    "rlock_error": library.ErrorStruct,
    "rlock_event": library.EventStruct,
    "rlock_holder": library.HolderStruct,
    "rlock_lock_info": library.LockInfoStruct,
    "rlock_stats": library.StatsStruct,
    "rlock_credentials": library.CredentialsStruct,
    "rlock_options": library.Options,
    "rlock_lock_options": library.LockOptions,
    "rlock_red_options": library.RedOptions}

NUMBERS = {
    **{f"RLOCK_{s.name}": s for s in rlock.Status},
    **{f"RLOCK_EVENT_{t.name}": t for t in rlock.EventType},
    **{f"RLOCK_LAYOUT_{k.name}": k for k in rlock.Layout}}


def asks():
    """What a C program is asked for, and what the module thinks that it is."""
    for name, number in NUMBERS.items():
        yield name, int(number)
    for name, struct in STRUCTS.items():
        for field, kind, *_ in struct._fields_:
            yield f"offsetof({name}, {field})", getattr(struct, field).offset
            yield (f"sizeof((({name} *)0)->{field})",
                   ctypes.sizeof(kind))


def read_headers():
    text = ""
    for name in sorted(os.listdir(os.path.join(HEADERS, "rlock"))):
        if name.endswith(".h"):
            with open(os.path.join(HEADERS, "rlock", name)) as f:
                text += f.read()
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


@unittest.skipUnless(HEADERS, "$RLOCK_INCLUDE does not say where headers are")
class Abi(unittest.TestCase):
    def test_structs_and_numbers_are_those_of_c(self):
        wanted = list(asks())
        self.assertGreater(len(wanted), 200)
        with tempfile.TemporaryDirectory(prefix="rlock.") as folder:
            source = os.path.join(folder, "asks.c")
            with open(source, "w") as f:
                f.write("#include <stdio.h>\n#include <rlock/rlock.h>\n"
                        "int main(void)\n{\n")
                for question, _ in wanted:
                    f.write(f'printf("%ld\\n", (long)({question}));\n')
                f.write("return 0;\n}\n")
            subprocess.run([*COMPILER, "-I", HEADERS, source, "-o",
                            source + ".out"], check=True)
            answers = subprocess.run([source + ".out"], check=True, text=True,
                                     stdout=subprocess.PIPE).stdout.split()
        for (question, mine), c in zip(wanted, answers):
            with self.subTest(question):
                self.assertEqual(mine, int(c))

    def test_functions_take_as_many_arguments_as_those_of_c(self):
        headers = read_headers()
        for name, (_, *arguments) in library._FUNCTIONS.items():
            given = re.search(r"\b%s\(([^;]*)\);" % name, headers).group(1)
            n = 0 if given.strip() == "void" else given.count(",") + 1
            with self.subTest(name):
                self.assertEqual(len(arguments), n)


if __name__ == "__main__":
    unittest.main()
