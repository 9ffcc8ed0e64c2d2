package server

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// askAll sends requests to a node one after another.
func askAll(t *testing.T, n *Node, lines ...string) (answers []string) {
	t.Helper()
	a := &asker{addr: n.Addrs()[0].String()}
	defer a.close()
	for _, line := range lines {
		answer, err := a.ask(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		answers = append(answers, answer)
	}
	return answers
}

// Quotas, credentials and feature levels are there after a restart.
func TestAdministrationSurvivesRestart(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	askAll(t, n,
		`AlterClientQuotas v1 {"Entries":[{"Entity":[{"Type":"user","Name":"u"}],"Ops":[{"Key":"producer_byte_rate","Value":5}]}]}`,
		`AlterUserSCRAMCredentials v0 {"Upsertions":[{"Name":"u","Mechanism":1,"Iterations":4096,"Salt":"s","SaltedPassword":"p"}]}`,
	)
	show := []string{`DescribeClientQuotas v1 {"Components":[]}`, `DescribeUserSCRAMCredentials v0 {}`}
	before := strings.Join(askAll(t, n, show...), "\n")
	if !strings.Contains(before, "producer_byte_rate") || !strings.Contains(before, "4096") {
		t.Fatalf("stored is\n%s", before)
	}
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	if after := strings.Join(askAll(t, start(t, fsys, load(t, testDir)), show...), "\n"); after != before {
		t.Fatalf("after a restart\n%s\nwas\n%s", after, before)
	}
}

// A broker that unregisters itself serves nothing, as Kafka's, until it starts
// again; then every record is there.
func TestUnregisteredBrokerComesBack(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir, "barnabas.admin.listener=127.0.0.1:0"))
	produce(t, client(t, n), "t", "kept")
	get(t, n, "/readyz", http.StatusOK)
	answers := askAll(t, n,
		`UnregisterBroker v0 {"BrokerID":1}`,
		`Metadata v8 {"Topics":[{"Topic":"t"}]}`,
		`ElectLeaders v2 {"ElectionType":1,"Topics":[{"Topic":"t","Partitions":[0]}],"TimeoutMillis":1000}`,
	)
	if answers[0] != `{"ErrorMessage":""}` || !strings.Contains(answers[1], `"Brokers":null,"ClusterID":"*","ControllerID":-1`) || !strings.Contains(answers[1], `"Leader":-1`) ||
		!strings.Contains(answers[2], `"ErrorCode":83`) {
		t.Fatalf("%s", strings.Join(answers, "\n"))
	}
	if got := get(t, n, "/readyz", http.StatusServiceUnavailable); !strings.Contains(got, "unregistered") {
		t.Fatalf("/readyz says %q", got)
	}
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	n = start(t, fsys, load(t, testDir))
	cl := client(t, n)
	cl.AddConsumeTopics("t")
	produce(t, cl, "t", "more")
	wantValues(t, consume(t, cl, 2), []string{"kept", "more"})
}

// The levels that ApiVersions tells are those that UpdateFeatures has left, also after
// a restart.
func TestFeatureLevelsAreTold(t *testing.T) {
	fsys := vfs.NewMem()
	n := start(t, fsys, load(t, testDir))
	finalized := func() (levels map[string]int16, epoch int64) {
		t.Helper()
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "test", "1"
		resp, err := req.RequestWith(within(t), client(t, n))
		if err != nil {
			t.Fatal(err)
		}
		levels = map[string]int16{}
		for _, f := range resp.FinalizedFeatures {
			levels[f.Name] = f.MaxVersionLevel
		}
		return levels, resp.FinalizedFeaturesEpoch
	}
	first, epoch := finalized()
	if first["metadata.version"] == 0 || first["group.version"] != 1 {
		t.Fatalf("at first %v", first)
	}
	askAll(t, n, `UpdateFeatures v2 {"TimeoutMillis":1000,"FeatureUpdates":[{"Feature":"group.version","MaxVersionLevel":0,"UpgradeType":2}]}`)
	lowered, later := finalized()
	if _, told := lowered["group.version"]; told || later <= epoch {
		t.Fatalf("lowered to %v in epoch %d after %d", lowered, later, epoch)
	}
	if err := stop(n); err != nil {
		t.Fatal(err)
	}
	n = start(t, fsys, load(t, testDir))
	if again, _ := finalized(); !maps.Equal(again, lowered) {
		t.Fatalf("after a restart %v, was %v", again, lowered)
	}
}

// What clients push is on the metrics page, under their names. This one does so every
// second; a last time when it closes too, if that takes no longer.
func TestPushedMetricsAreShown(t *testing.T) {
	n := start(t, vfs.NewMem(), load(t, testDir, "barnabas.admin.listener=127.0.0.1:0"))
	askAll(t, n, `IncrementalAlterConfigs v1 {"Resources":[{"ResourceType":16,"ResourceName":"all","Configs":[{"Name":"metrics","Op":0,"Value":"org.apache.kafka."},{"Name":"interval.ms","Op":0,"Value":"100"}]}]}`)
	cl := client(t, n, kgo.ClientID("pusher"))
	produce(t, cl, "t", "one")
	for _, want := range []string{
		`kafka_client_producer_connection_creation_total{client_id="pusher",client_instance_id="`,
		`barnabas_client_metrics_pushes_total{outcome="NONE"} `, "barnabas_client_metrics_instances 1",
	} {
		eventually(t, want+" is on the page", func() bool { return strings.Contains(get(t, n, "/metrics", http.StatusOK), want) })
	}
}
