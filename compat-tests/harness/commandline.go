package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// barnabasCommand is the one place that knows how our broker is started.
func barnabasCommand(o Options) (*exec.Cmd, error) {
	bin, err := Binary()
	if err != nil {
		return nil, err
	}
	args := []string{
		"serve",
		"--listeners", fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", o.Port),
		"--admin", fmt.Sprintf("127.0.0.1:%d", o.AdminPort),
		"--data", filepath.Join(o.Dir, "data"),
	}
	if len(o.Properties) > 0 {
		file := filepath.Join(o.Dir, "server.properties")
		if err := os.WriteFile(file, []byte(propertyLines(o.Properties)), 0o644); err != nil {
			return nil, err
		}
		args = append(args, "--config", file)
	}
	return exec.Command(bin, args...), nil
}

// kafkaCommand formats the folder on its first use and starts one combined broker and controller, with the settings of
// the server.properties that Apache Kafka ships.
func kafkaCommand(o Options) (*exec.Cmd, error) {
	find := JavaLibs
	if o.Kind == KafkaOlder {
		find = JavaLibsOlder
	}
	libs, err := find()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "server.properties")
	props := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.voters":                         fmt.Sprintf("1@127.0.0.1:%d", o.AdminPort),
		"listeners":                                        fmt.Sprintf("PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", o.Port, o.AdminPort),
		"advertised.listeners":                             fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", o.Port),
		"controller.listener.names":                        "CONTROLLER",
		"log.dirs":                                         filepath.Join(o.Dir, "data"),
		"num.network.threads":                              "3",
		"num.io.threads":                                   "8",
		"socket.send.buffer.bytes":                         "102400",
		"socket.receive.buffer.bytes":                      "102400",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
		"group.initial.rebalance.delay.ms":                 "0",
	}
	for k, v := range o.Properties {
		props[k] = v
	}
	if err := os.WriteFile(file, []byte(propertyLines(props)), 0o644); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "data", "meta.properties")); err != nil {
		const clusterID = "Y29tcGF0LXRlc3RzLTAwMQ"
		format := exec.Command("java", JavaArgs(libs, 128, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", file)...)
		if out, err := format.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("format Apache Kafka's folder: %w: %s", err, out)
		}
	}
	heap := o.HeapMB
	if heap == 0 {
		heap = 512
	}
	args := append([]string{"-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"}, JavaArgs(libs, heap, "kafka.Kafka", file)...)
	return exec.Command("java", args...), nil
}

func propertyLines(props map[string]string) string {
	keys := make([]string, 0, len(props))
	for k := range props {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s=%s\n", k, props[k])
	}
	return b.String()
}
