package config

import (
	"slices"
	"strings"
)

// ignoredEnv are variables with KAFKA_ in front that steer Java, its logging or
// the scripts around Kafka. They are passed over without a word.
var ignoredEnv = []string{
	"KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS", "KAFKA_VERSION", "KAFKA_HOME",
	"KAFKA_DEBUG", "KAFKA_MODE", "KAFKA_CLASSPATH", "KAFKA_LOG_LEVEL", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_URL",
	"KAFKA_SSL_KEYSTORE_FILENAME", "KAFKA_SSL_KEY_CREDENTIALS", "KAFKA_SSL_KEYSTORE_CREDENTIALS",
	"KAFKA_SSL_TRUSTSTORE_FILENAME", "KAFKA_SSL_TRUSTSTORE_CREDENTIALS", "KAFKA_REST_PROXY_HOST",
}

// ignoredEnvPrefixes are the same by prefix; the last ones are what Kubernetes
// sets for a service that is called kafka.
var ignoredEnvPrefixes = []string{"KAFKA_JMX_", "KAFKA_LOG4J_", "KAFKA_SERVICE_", "KAFKA_PORT_"}

// ownEnv are variables that the command line reads itself.
var ownEnv = []string{"BARNABAS_CONFIG", "BARNABAS_EPHEMERAL", "BARNABAS_BROKER", "BARNABAS_QUIET"}

// clusterIDEnv are the names under which images take the cluster's id.
var clusterIDEnv = []string{"CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID"}

// fromEnv lists the settings in the environment, by name of the variable: the
// apache/kafka image's KAFKA_NUM_PARTITIONS is num.partitions, where _ stands for
// a dot, __ for _ and ___ for a dash. An empty variable is not set: compose
// files pass those on for what they leave open.
func fromEnv(environ []string) []Setting {
	var list []Setting
	for _, pair := range environ {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(value) == "" {
			continue
		}
		if key := envKey(name, value); key != "" {
			list = append(list, Setting{Key: key, Value: value, Where: "environment variable " + name})
		}
	}
	slices.SortFunc(list, func(a, b Setting) int { return strings.Compare(a.Where, b.Where) })
	return list
}

// envKey is the key that a variable sets, "" when it sets none.
func envKey(name, value string) string {
	switch {
	case slices.Contains(clusterIDEnv, name):
		return ClusterID.Name
	case name == "BARNABAS_DATA":
		return LogDirs.Name
	case slices.Contains(ignoredEnv, name), slices.Contains(ownEnv, name):
		return ""
	case name == "KAFKA_PORT" && strings.Contains(value, "://"): // Kubernetes again
		return ""
	case slices.ContainsFunc(ignoredEnvPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
		return ""
	case strings.HasPrefix(name, "KAFKA_CFG_"): // the Bitnami image's spelling
		return dotted(name[len("KAFKA_CFG_"):])
	case strings.HasPrefix(name, "KAFKA_"):
		return dotted(name[len("KAFKA_"):])
	case strings.HasPrefix(name, "BARNABAS_"):
		return dotted(name)
	}
	return ""
}

func dotted(name string) string {
	key := strings.ReplaceAll(strings.ToLower(name), "_", ".")
	return strings.ReplaceAll(strings.ReplaceAll(key, "...", "-"), "..", "_")
}
