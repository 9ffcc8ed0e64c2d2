#!/bin/sh
# Apache Kafka by hand: one combined broker and controller on a port of your choice.
#   kafka.sh start PORT DATA   starts it in the background, returns once it answers; extra key=value lines from $ORACLE_PROPS
#   kafka.sh stop  DATA        stops it
#   kafka.sh tool  CLASS ...   runs a class, e.g. org.apache.kafka.tools.TopicCommand --bootstrap-server ...
# $ORACLE_VERSION picks another version than that of pom.xml, e.g. 3.9.2 for what Kafka 4 no longer serves.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
libs=$("$here/fetch.sh")
verb=${1:?start, stop or tool}
shift
log4j2="-Dlog4j2.configurationFile=file:$here/log4j2.properties" log4j="-Dlog4j.configuration=file:$here/log4j.properties"
run() { java "-Xmx${ORACLE_HEAP:-512m}" -XX:+UseG1GC "$log4j2" "$log4j" -cp "$libs/*" "$@"; }
case $verb in
start)
	port=$1 data=$2
	mkdir -p "$data"
	if [ ! -f "$data/server.properties" ]; then
		cat >"$data/server.properties" <<-P
			process.roles=broker,controller
			node.id=1
			controller.quorum.voters=1@127.0.0.1:$((port + 1))
			listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
			advertised.listeners=PLAINTEXT://127.0.0.1:$port
			controller.listener.names=CONTROLLER
			log.dirs=$data/logs
			offsets.topic.replication.factor=1
			transaction.state.log.replication.factor=1
			transaction.state.log.min.isr=1
			share.coordinator.state.topic.replication.factor=1
			share.coordinator.state.topic.min.isr=1
			group.initial.rebalance.delay.ms=0
		P
		printf '%b\n' "${ORACLE_PROPS:-}" >>"$data/server.properties"
		run kafka.tools.StorageTool format -t "$(run kafka.tools.StorageTool random-uuid)" -c "$data/server.properties" >"$data/format.out" 2>&1
	fi
	setsid java "-Xmx${ORACLE_HEAP:-512m}" -XX:+UseG1GC "$log4j2" "$log4j" \
		-cp "$libs/*" kafka.Kafka "$data/server.properties" >"$data/out" 2>&1 &
	echo $! >"$data/pid"
	for _ in $(seq 1 60); do
		if run org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --list >/dev/null 2>&1; then
			echo "Apache Kafka on 127.0.0.1:$port, data $data, pid $(cat "$data/pid")"
			exit 0
		fi
		kill -0 "$(cat "$data/pid")" || { cat "$data/out" >&2; exit 1; }
	done
	echo "no answer after 60 tries" >&2
	exit 1
	;;
stop)
	pid=$(cat "$1/pid")
	kill "$pid"
	tail --pid="$pid" -f /dev/null
	;;
tool) run "$@" ;;
esac
