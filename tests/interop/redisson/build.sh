#!/bin/sh
# build.sh SOURCE DIRECTORY [JAVA_OPTION]...
#
# Fetches Redisson at the version of pom.xml, compiles the source beside it, and
# leaves DIRECTORY/peer behind, which runs the class of the source's name.
set -eu

source=$(realpath "$1")
mkdir -p "$2"
dir=$(realpath "$2")
shift 2
cd "$(dirname "$0")"

rm -rf "$dir/lib" "$dir/classes" "$dir/peer"
mvn -q -B dependency:copy-dependencies -DoutputDirectory="$dir/lib"
javac -d "$dir/classes" -cp "$dir/lib/*" "$source"
cat >"$dir/peer" <<END
#!/bin/sh
exec java $* -cp '$dir/classes:$dir/lib/*' $(basename "$source" .java) "\$@"
END
chmod +x "$dir/peer"
