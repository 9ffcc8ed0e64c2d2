#!/bin/sh
# Resolves Apache Kafka and its tools from Maven into $ORACLE_DIR/libs and prints that folder.
# Exits 3, with the reason, where there is no JVM or no Maven; any other failure is a real one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${ORACLE_DIR:-$here/../.cache/kafka}
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")

command -v java >/dev/null || { echo "no java on this machine" >&2; exit 3; }
if [ -f "$dir/libs/kafka-clients-$version.jar" ] && [ -f "$dir/libs/kafka-tools-$version.jar" ]; then
	echo "$dir/libs"
	exit 0
fi
command -v mvn >/dev/null || { echo "no mvn on this machine and no jars in $dir/libs" >&2; exit 3; }
rm -rf "$dir/libs.new"
mvn -q -B -f "$here/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
	-DincludeScope=runtime -DoutputDirectory="$dir/libs.new" >&2
rm -rf "$dir/libs"
mv "$dir/libs.new" "$dir/libs"
echo "$dir/libs"
