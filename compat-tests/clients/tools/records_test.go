package tools

import (
	"bufio"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func lines(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i, i)
	}
	return b.String()
}

const consoleConsumer = "consumer.ConsoleConsumer"

func TestConsole(t *testing.T) {
	topic := newTopic(t, 1)
	produce := func(input string, args ...string) {
		t.Helper()
		all := append([]string{"--bootstrap-server", harness.Shared.Addr(), "--topic", topic}, args...)
		try(t, input, "ConsoleProducer", all...).must(t, "ConsoleProducer", all)
	}
	produce(lines(50, "k%d:v%d"), "--reader-property", "parse.key=true", "--reader-property", "key.separator=:", "--compression-codec", "zstd")
	produce("a:1,b:2\tk\tv\n", "--reader-property", "parse.headers=true", "--reader-property", "parse.key=true")
	read := func(args ...string) string {
		t.Helper()
		return tool(t, consoleConsumer, append([]string{"--topic", topic, "--timeout-ms", "20000"}, args...)...)
	}
	out := read("--from-beginning", "--max-messages", "50", "--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
	if out != lines(50, "k%d:v%d") {
		t.Errorf("what came back:\n%s", out)
	}
	out = read("--partition", "0", "--offset", "50", "--max-messages", "1", "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true",
		"--formatter-property", "print.offset=true", "--formatter-property", "print.partition=true")
	if out != "Partition:0\tOffset:50\ta:1,b:2\tk\tv\n" {
		t.Errorf("with headers: %q", out)
	}
	group := "g-" + topic
	read("--from-beginning", "--group", group, "--max-messages", "20")
	line := row(t, tool(t, groupTool, "--describe", "--group", group), group, topic)
	if len(line) > 3 && line[3] != "20" {
		t.Errorf("after 20 messages the group is at %q", line)
	}
	want(t, read("--group", group, "--max-messages", "1"), "v20\n")
	offsets := tool(t, consoleConsumer, "--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000", "--formatter",
		"org.apache.kafka.tools.consumer.OffsetsMessageFormatter")
	want(t, offsets, `"group":"`+group+`"`, `"offset":21`)
}

func TestProducerPerformance(t *testing.T) {
	topic := newTopic(t, 2)
	out := tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--record-size", "100", "--throughput", "-1")
	if !regexp.MustCompile(`20000 records sent, [0-9.]+ records/sec`).MatchString(out) {
		t.Errorf("%s", out)
	}
	out = tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1",
		"--transactional-id", harness.Name(t, "perf"), "--transaction-duration-ms", "100")
	want(t, out, "5000 records sent")
	out = tool(t, "ConsumerPerformance", "--topic", topic, "--num-records", "20000", "--timeout", "20000")
	want(t, out, "data.consumed.in.MB")
	table := strings.Split(strings.TrimSpace(out), "\n")
	fields := strings.Split(table[len(table)-1], ", ")
	if len(fields) < 5 || len(fields[4]) < 5 {
		t.Errorf("%s", out)
	}
}

func TestVerifiable(t *testing.T) {
	topic := newTopic(t, 2)
	out := tool(t, "VerifiableProducer", "--topic", topic, "--max-messages", "500", "--acks", "-1")
	acked := 0
	for e := range events(t, out) {
		if e["name"] == "producer_send_error" {
			t.Errorf("%v", e)
		}
		if e["name"] == "producer_send_success" {
			acked++
		}
	}
	if acked != 500 {
		t.Errorf("%d of 500 are acknowledged", acked)
	}
	for _, protocol := range []string{"classic", "consumer"} {
		out = tool(t, "VerifiableConsumer", "--topic", topic, "--group-id", "g-"+protocol+topic, "--group-protocol", protocol, "--max-messages", "500",
			"--reset-policy", "earliest", "--verbose")
		read, committed := 0, 0
		for e := range events(t, out) {
			switch e["name"] {
			case "record_data":
				read++
			case "offsets_committed":
				committed++
				if e["success"] != true {
					t.Errorf("%v", e)
				}
			}
		}
		if read < 500 || committed == 0 {
			t.Errorf("%s: %d records are read, %d commits", protocol, read, committed)
		}
	}
}

// events are the lines of JSON that the verifiable clients print.
func events(t *testing.T, out string) func(func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		scan := bufio.NewScanner(strings.NewReader(out))
		scan.Buffer(nil, 1<<20)
		for scan.Scan() {
			var e map[string]any
			if strings.HasPrefix(scan.Text(), "{") {
				if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
					t.Errorf("%v in %s", err, scan.Text())
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

func TestEndToEndLatency(t *testing.T) {
	topic := newTopic(t, 1)
	out := tool(t, "EndToEndLatency", "--topic", topic, "--num-records", "100", "--producer-acks", "1", "--record-size", "20")
	want(t, out, "Avg latency:", "Percentiles: 50th = ")
}

func TestTransactions(t *testing.T) {
	topic := newTopic(t, 1)
	id := harness.Name(t, "txn")
	tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "100", "--record-size", "10", "--throughput", "-1", "--transactional-id", id,
		"--transaction-duration-ms", "60000")
	line := row(t, tool(t, "TransactionsCommand", "list"), id, "CompleteCommit")
	if len(line) < 4 {
		t.Fatal("the transaction is not listed")
	}
	producerID := line[2]
	row(t, tool(t, "TransactionsCommand", "describe", "--transactional-id", id), producerID, id, "CompleteCommit")
	row(t, tool(t, "TransactionsCommand", "describe-producers", "--topic", topic, "--partition", "0"), producerID)
	tool(t, "TransactionsCommand", "find-hanging", "--topic", topic, "--partition", "0")
	hanging := tool(t, "TransactionsCommand", "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "1")
	if strings.Contains(hanging, topic) {
		t.Errorf("a finished transaction hangs:\n%s", hanging)
	}
	want(t, tool(t, "GetOffsetShell", "--topic", topic), topic+":0:101\n") // the marker has an offset too

}
