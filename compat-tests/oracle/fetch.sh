#!/bin/sh
# Resolves Apache Kafka and its tools from Maven into $ORACLE_DIR/libs and prints that folder.
# $ORACLE_VERSION is the version, that of pom.xml by default; each other version has a folder of its own.
# Exits 3, with the reason, where there is no JVM or no Maven; any other failure is a real one.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
newest=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")
version=${ORACLE_VERSION:-$newest}
cache=kafka
[ "$version" = "$newest" ] || cache=kafka-$version
dir=${ORACLE_DIR:-$here/../.cache/$cache}
# Before 4.0 Kafka brings a logger of its own.
exclude=
case $version in [0-3].*) exclude=log4j-slf4j-impl,log4j-core,log4j-api ;; esac

command -v java >/dev/null || { echo "no java on this machine" >&2; exit 3; }
# Rows run side by side, and the first of them fetches for all.
mkdir -p "$dir"
exec 9>"$dir/fetch.lock"
if command -v flock >/dev/null; then flock 9; fi
if [ -f "$dir/libs/kafka-clients-$version.jar" ] && [ -f "$dir/libs/kafka-tools-$version.jar" ]; then
	echo "$dir/libs"
	exit 0
fi
command -v mvn >/dev/null || { echo "no mvn on this machine and no jars in $dir/libs" >&2; exit 3; }
rm -rf "$dir/libs.new"
# Maven waits half an hour for a repository that has gone silent, and keeps a day in mind what it once did not find. The
# names are those of Maven 3.8 and those of the versions after it.
patience="-U -Dmaven.wagon.rto=60000 -Dmaven.wagon.http.retryHandler.count=3 -Daether.connector.requestTimeout=60000 -Daether.connector.http.retryHandler.count=3"
# shellcheck disable=SC2086 # several words
mvn -q -B $patience -f "$here/pom.xml" "-Dkafka.version=$version" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
	-DincludeScope=runtime "-DexcludeArtifactIds=$exclude" -DoutputDirectory="$dir/libs.new" >&2
rm -rf "$dir/libs"
mv "$dir/libs.new" "$dir/libs"
echo "$dir/libs"
