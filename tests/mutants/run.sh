#!/bin/sh
# run.sh [--since REV] [--seconds N]
# run.sh --all [--folder F] [--seconds N] [--unrecorded]
# run.sh --again ID...
# run.sh --id ID
# run.sh --list FILE
#
# Do the tests notice? A mutant is the library with one small mistake in it: a
# comparison or an operator exchanged, a condition negated or fixed, a statement
# dropped, a constant one off, a function that returns at once, two arguments
# exchanged, in a C file of src/, but of base/, or in lua/.
# A suite that stays green with it has a hole there.
#
# Without --all it is what a change has to pass. Tried are at most 30 mutants of the
# lines that differ from REV (HEAD~1), drawn by lot, and then 20 from anywhere; the
# commit is the seed. Each that is not noticed is told. One on a touched line fails
# the change, and so do more than 6 from anywhere. What has not begun after N seconds
# (300, without those for building) is said, and is no failure.
#
#   --all      all, or all of the folder F, in an order drawn by lot; what an earlier
#              run has judged, and whose file is still the same, is not tried again.
#              A folder below its floor in floors.txt fails.
#              First all programs run once, in a build of its own, to know which
#              executes which line; after that those alone are asked. A record counts
#              for files that are the same
#   --unrecorded  not that. Asked are, as in a sample, the programs with a name like
#              the file's and those of programs.txt, if there is no record yet
#   --again    these, whatever is known of them; one that is not noticed fails
#   --id       a tree with the mutant, to look at, in BUILD_DIR/trees/ID
#   --list     the mutants of a file, as src/hold/room.c
#
# A mutant that the compiler refuses, all its warnings being errors, or whose object
# is the same as without, is none. The others meet, until something fails:
#
#   1. clang's analysis of locks
#   2. the unit tests, then 300 seeds of the simulator
#   3. fault.shimmed_memory and fault.shimmed_async; for run and route these first,
#      and for a script server.script_table
#   4. programs of server and fault, for 30 s of their time
#
# A program that fails is run again, only the test that failed; of three runs two
# count, and BUILD_DIR/flaky.txt keeps what passed once. It also runs once without a
# mistake: if it fails then, it notices nothing in this run, and that is said.
#
# same.txt lists mutants that change nothing, with a reason each; a row that matches
# nothing, or whose mutant is noticed, is a failure. Closes with "N passed, N failed".
#
#   BUILD_DIR   where to build, and to keep what is known; build-mutants
#   CMAKE_ARGS  more arguments for CMake, split at blanks
#   JOBS        how many mutants at a time; 4, as servers mostly wait
set -eu

cd "$(dirname "$0")/../.."
case ${1-} in
--list | --id) ;;
*)
    trap 'echo "0 passed, 1 failed"' EXIT
    tests/deps.sh mutants
    trap - EXIT
    ;;
esac
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/mutants/mutants.py "$@"
