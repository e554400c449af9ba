"""The library built as it is, and again with one mistake.

A copy of the sources is built once. A mutant costs one object file, which each
program is linked with in front of the library's archive: what is defined there is
not looked for in the archive. The simulator has the archive in one object, so that
one is made anew.

An object has no line numbers, so a mistake that changes nothing is seen by its
bytes.
"""
import filecmp
import glob
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import threading

COPIED = ['CMakeLists.txt', 'include', 'src', 'lua', 'tests']
# What was not set is rubbish, on the stack and (PERTURBED) elsewhere, and mutexes are
# taken in their order, or the program ends: so a mistake of that kind does not depend
# on what happens to be there.
RUBBISH = '-ftrivial-auto-var-init=pattern'
PERTURBED = {'MALLOC_PERTURB_': '165'}
# How a program is linked is read where this generator writes it.
CONFIGURE = ['-G', 'Unix Makefiles',
             '-DRLOCK_BUILD_TESTS=ON', '-DRLOCK_BUILD_SIM=ON', '-DRLOCK_CHECK_RANKS=ON',
             '-DRLOCK_BUILD_EXAMPLES=OFF', '-DRLOCK_INSTALL=OFF',
             '-DRLOCK_TEST_PLAIN=ON', '-DCMAKE_EXPORT_COMPILE_COMMANDS=ON',
             '-DCMAKE_BUILD_TYPE=Release']
RENAMED = ['malloc', 'calloc', 'realloc', 'free', 'strdup']
# An exchanged && and || needs no parentheses to be a mistake.
WARNINGS = ['-Werror', '-Wno-parentheses']
# Not -w, which would silence the errors, too.
LOCKS = ['clang', '-fsyntax-only', '-Wno-everything', '-Wthread-safety',
         '-Werror=thread-safety']
LOCKED = '#include "base/thread.h"\nvoid f(rl_mutex *m);\n' \
         'void f(rl_mutex *m)\n{\n    %s\n    rl_mutex_unlock(m);\n}\n'


class Failed(Exception):
    """A command that has to work has not."""


def run(command, cwd=None):
    p = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout.decode(errors='replace')


def must(command, cwd=None):
    status, output = run(command, cwd)
    if status != 0:
        raise Failed('%s\n%s' % (shlex.join(command), output[-3000:]))
    return output


def copy_changed(source, to):
    """Files that are the same keep their times, so nothing of theirs is rebuilt."""
    if os.path.isfile(source):
        if not os.path.exists(to) or not filecmp.cmp(source, to, shallow=False):
            shutil.copyfile(source, to)
            shutil.copymode(source, to)
        return
    os.makedirs(to, exist_ok=True)
    names = {n for n in os.listdir(source) if n not in ('mutants', '__pycache__')}
    for gone in set(os.listdir(to)) - names:
        path = os.path.join(to, gone)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    for name in names:
        copy_changed(os.path.join(source, name), os.path.join(to, name))


class Build:
    def __init__(self, root, folder, jobs):
        self.root, self.folder, self.jobs = root, folder, jobs
        self.source = os.path.join(folder, 'source')
        self.tree = os.path.join(folder, 'tree')
        self.mutex = threading.Lock()
        self.made, self.named = set(), []

    def prepare(self):
        os.makedirs(self.source, exist_ok=True)
        shutil.rmtree(os.path.join(self.folder, 'work'), ignore_errors=True)
        for name in COPIED:
            copy_changed(os.path.join(self.root, name),
                         os.path.join(self.source, name))
        args = shlex.split(os.environ.get('CMAKE_ARGS', ''))
        flags = '-O2 -DNDEBUG' + (' ' + RUBBISH if self.can_rubbish() else '')
        must(['cmake', '-S', self.source, '-B', self.tree,
              '-DCMAKE_C_FLAGS_RELEASE=' + flags] + CONFIGURE + args)
        self.make('rlock_objects', 'rlock_static', 'rlock_inside', 'test_unit',
                  'rlock_sim')
        with open(os.path.join(self.tree, 'compile_commands.json')) as f:
            self.commands = {os.path.relpath(c['file'], self.source):
                             shlex.split(c['command']) for c in json.load(f)
                             if '/rlock_objects.dir/' in c['command']}
        self.objects = glob.glob(
            os.path.join(self.tree, 'CMakeFiles/rlock_objects.dir/**/*.o'),
            recursive=True)
        self.try_locks()

    def can_rubbish(self):
        return run(['cc', RUBBISH, '-fsyntax-only', '-x', 'c', '/dev/null'])[0] == 0

    def try_locks(self):
        """Clang's analysis is judged: with a lock it is silent, and without it not."""
        path = os.path.join(self.folder, 'locked.c')
        command = next(c for p, c in self.commands.items() if p.endswith('/hold.c'))
        for text, noticed in (('rl_mutex_lock(m);', False), ('(void)0;', True)):
            with open(path, 'w') as f:
                f.write(LOCKED % text)
            if bool(self.locks(command, path)) != noticed and shutil.which('clang'):
                raise Failed('clang %s: %s' % (
                    'is silent' if noticed else 'complains', text))

    def locks(self, command, path):
        """'clang' if its analysis of locks notices something."""
        if not shutil.which('clang'):
            return None
        kept = [c for c in command[1:] if c[:2] in ('-D', '-I', '-s')]
        status, output = run(LOCKS + kept + [path])
        return 'clang' if status != 0 and 'thread-safety' in output else None

    def make(self, *targets):
        with self.mutex:
            missing = [t for t in targets if t not in self.made]
            if missing:
                must(['cmake', '--build', self.tree, '-j', str(self.jobs),
                      '--target'] + missing)
                self.made.update(missing)

    def tests(self, *patterns):
        """A word that is another one when anything of the tests is; or of these."""
        whole, found = hashlib.sha1(), set()
        for pattern in patterns or ['**/*.[ch]']:
            found.update(glob.glob(os.path.join(self.source, 'tests', pattern),
                                   recursive=True))
        for path in sorted(found):
            with open(path, 'rb') as f:
                whole.update(path.encode() + f.read())
        return whole.hexdigest()[:12]

    def programs(self):
        """Of server and fault, as `server/lock`."""
        if not self.named:
            found = glob.glob(os.path.join(self.source, 'tests/server/*.c')) + \
                glob.glob(os.path.join(self.source, 'tests/fault/*.c'))
            self.named = sorted('/'.join(p[:-2].split('/')[-2:]) for p in found)
        return self.named

    def program(self, name):
        """The program as it is."""
        if name == 'sim':
            return os.path.join(self.tree, 'tests/sim/sim')
        if name == 'unit':
            return os.path.join(self.tree, 'tests/unit/unit')
        self.make(target_of(name))
        return os.path.join(self.tree, 'tests', name)

    def link_command(self, name):
        target = target_of(name)
        folder = 'tests/sim' if name == 'sim' else 'tests'
        cwd = os.path.join(self.tree, folder)
        with open('%s/CMakeFiles/%s.dir/link.txt' % (cwd, target)) as f:
            return shlex.split(f.read()), cwd


def target_of(name):
    return 'rlock_sim' if name == 'sim' else 'test_' + name.replace('/', '_')


class Mutant:
    """A place, made: its object, and the programs that are linked with it."""

    def __init__(self, build, place, text):
        self.build, self.place, self.text = build, place, text
        self.work = os.path.join(build.folder, 'work', place.id)
        self.object = self.linked = None

    def write(self):
        """The tree to look at has nothing but what differs."""
        path = os.path.join(self.work, self.place.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w') as f:
            f.write(self.place.apply(self.text))
        return path

    def compile(self):
        """None, or why it is none: 'not compiled', 'same', or 'clang' notices."""
        shutil.rmtree(self.work, ignore_errors=True)
        path = self.write()
        if self.place.folder == 'lua':
            return self.embed()
        command = self.build.commands[self.place.path]
        self.object = path[:-2] + '.o'
        if run(self.own(command, self.place.path, path) + WARNINGS)[0] != 0:
            return 'not compiled'
        base = os.path.join(self.build.tree, 'CMakeFiles/rlock_objects.dir',
                            self.place.path + '.o')
        if filecmp.cmp(self.object, base, shallow=False):
            return 'same'
        return self.build.locks(command, path)

    def own(self, command, relative, path):
        """The command of this file, for another one: its object beside it."""
        command = list(command)
        command[command.index('-o') + 1] = self.object
        command[command.index('-c') + 1] = path
        return command

    def embed(self):
        lua, to = os.path.join(self.work, 'all'), os.path.join(self.work, 'generated')
        shutil.copytree(os.path.join(self.build.source, 'lua'), lua)
        shutil.copyfile(os.path.join(self.work, self.place.path),
                        os.path.join(lua, self.place.path[len('lua/'):]))
        must(['cmake', '-DSOURCE=' + lua, '-DOUTPUT=' + to, '-P',
              os.path.join(self.build.source, 'src/cmake/EmbedLua.cmake')])
        path = os.path.join(to, 'scripts.c')
        generated = next(n for n in self.build.commands if n.endswith('scripts.c'))
        if filecmp.cmp(path, os.path.join(self.build.tree, 'generated/scripts.c'),
                       shallow=False):
            return 'same'
        self.object = path[:-2] + '.o'
        must(self.own(self.build.commands[generated], generated, path))
        return None

    def environment(self):
        """The table of scripts reads those of a folder, if it is told."""
        env = dict(os.environ)
        if self.place.folder == 'lua':
            env['RLOCK_TEST_LUA'] = os.path.join(self.work, 'generated/lua')
        return env

    def program(self, name):
        """Linked anew for each use: it takes a tenth of a second."""
        if name == 'sim':
            return self.link_sim()
        self.build.make(target_of(name))
        command, cwd = self.build.link_command(name)
        out = os.path.join(self.work, name.replace('/', '_'))
        command[command.index('-o') + 1] = out
        inside = next(i for i, c in enumerate(command) if c.endswith('_inside.a'))
        command.insert(inside, self.object)
        must(command, cwd)
        return out

    def link_sim(self):
        """As the archive is made: one object, what is hidden made local."""
        one = os.path.join(self.work, 'rlock.o')
        lua = self.place.folder == 'lua'
        end = 'generated/scripts.c.o' if lua else '/%s.o' % self.place.path
        objects = [self.object if o.endswith(end) else o for o in self.build.objects]
        must(['cc', '-r', '-nostdlib', '-o', one] + objects)
        renamed = sum([['--redefine-sym', '%s=world_%s' % (f, f)]
                       for f in RENAMED], [])
        must(['objcopy', '--localize-hidden', one])
        must(['objcopy'] + renamed + [one])
        command, cwd = self.build.link_command('sim')
        out = os.path.join(self.work, 'sim')
        command[command.index('-o') + 1] = out
        command = [one if c.endswith('librlock_world.a') else
                   self.object if lua and c.endswith('scripts.c.o') else c
                   for c in command]
        must(command, cwd)
        return out

    def remove(self):
        shutil.rmtree(self.work, ignore_errors=True)
