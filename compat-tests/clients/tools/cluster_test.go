package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

func TestFeatures(t *testing.T) {
	out := tool(t, "FeatureCommand", "describe")
	for _, f := range []string{"metadata.version", "transaction.version", "group.version", "kraft.version"} {
		want(t, out, "Feature: "+f)
	}
	want(t, tool(t, "FeatureCommand", "upgrade", "--feature", "transaction.version=2", "--dry-run"), "transaction.version")
	refused(t, "", "FeatureCommand", "upgrade", "--feature", "transaction.version=99")
	refused(t, "", "FeatureCommand", "upgrade", "--feature", "no.such.feature=1")
}

func TestMetadataQuorum(t *testing.T) {
	want(t, tool(t, "MetadataQuorumCommand", "describe", "--status"), "ClusterId:", "LeaderId:               1", "HighWatermark:", "CurrentVoters:")
	line := row(t, tool(t, "MetadataQuorumCommand", "describe", "--replication"), "Leader", "1")
	if len(line) > 0 && line[0] != "1" {
		t.Errorf("the leader's row is %q", line)
	}
}

func TestLeaderElection(t *testing.T) {
	topic := newTopic(t, 2)
	r := try(t, "", "LeaderElectionCommand", "--bootstrap-server", harness.Shared.Addr(), "--election-type", "preferred", "--topic", topic, "--partition", "0")
	want(t, r.out, "Valid replica already elected for partitions "+topic+"-0")
	want(t, tool(t, "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"), "")
	want(t, try(t, "", "LeaderElectionCommand", "--bootstrap-server", harness.Shared.Addr(), "--election-type", "unclean", "--path-to-json-file",
		file(t, fmt.Sprintf(`{"partitions": [{"topic": %q, "partition": 1}]}`, topic))).out, "Valid replica already elected")
	refused(t, "", "LeaderElectionCommand", "--election-type", "preferred", "--topic", topic, "--partition", "77")
}

func TestReassignPartitions(t *testing.T) {
	topic := newTopic(t, 2)
	plan := tool(t, "reassign.ReassignPartitionsCommand", "--generate", "--broker-list", "1", "--topics-to-move-json-file",
		file(t, fmt.Sprintf(`{"topics": [{"topic": %q}], "version": 1}`, topic)))
	want(t, plan, "Proposed partition reassignment configuration")
	_, proposed, _ := strings.Cut(plan, "Proposed partition reassignment configuration\n")
	var parsed struct {
		Partitions []struct {
			Topic    string
			Replicas []int
		}
	}
	if err := json.Unmarshal([]byte(proposed), &parsed); err != nil || len(parsed.Partitions) != 2 || parsed.Partitions[0].Replicas[0] != 1 {
		t.Fatalf("%v in %s", err, plan)
	}
	planned := file(t, proposed)
	want(t, tool(t, "reassign.ReassignPartitionsCommand", "--execute", "--reassignment-json-file", planned), "Successfully started partition reassignments for "+topic+"-0,"+topic+"-1")
	verified := tool(t, "reassign.ReassignPartitionsCommand", "--verify", "--reassignment-json-file", planned)
	for p := range 2 {
		want(t, verified, fmt.Sprintf("Reassignment of partition %s-%d is completed.", topic, p))
	}
	want(t, tool(t, "reassign.ReassignPartitionsCommand", "--list"), "No partition reassignments found.")
	want(t, tool(t, "reassign.ReassignPartitionsCommand", "--cancel", "--reassignment-json-file", planned), "None of the specified partition reassignments are active.")
	elsewhere := file(t, fmt.Sprintf(`{"version": 1, "partitions": [{"topic": %q, "partition": 0, "replicas": [7]}]}`, topic))
	refused(t, "", "reassign.ReassignPartitionsCommand", "--execute", "--reassignment-json-file", elsewhere)
}

func clusterID(t *testing.T) string {
	t.Helper()
	args := []string{"cluster-id", "--bootstrap-server", harness.Shared.Addr()}
	_, id, ok := strings.Cut(try(t, "", "ClusterTool", args...).must(t, "ClusterTool", args), "Cluster ID: ")
	if id = strings.TrimSpace(id); !ok || len(id) != 22 {
		t.Errorf("the cluster's id is %q", id)
	}
	return id
}

func TestCluster(t *testing.T) {
	clusterID(t)
	args := []string{"list-endpoints", "--bootstrap-server", harness.Shared.Addr()}
	want(t, try(t, "", "ClusterTool", args...).must(t, "ClusterTool", args), fmt.Sprint(harness.Shared.Port))
	versions := tool(t, "BrokerApiVersionsCommand")
	want(t, versions, "(id: 1 rack: null isFenced: false)", "Produce(0): ", "Fetch(1): ", "FindCoordinator(10): ")
	refused(t, "No Authorizer is configured", "AclCommand", "--list")
	refused(t, "", "DelegationTokenCommand", "--describe")
}

func TestClientCompatibility(t *testing.T) {
	topic := newTopic(t, 1)
	clusterID(t)
	args := []string{"--topic", topic, "--num-cluster-nodes", "1"}
	for _, feature := range []string{
		"offsets-for-times-supported", "cluster-id-supported", "expect-record-too-large-exception", "create-topics-supported",
		"describe-acls-supported", "describe-configs-supported", "idempotent-producer-supported",
	} {
		supported := "True"
		if feature == "expect-record-too-large-exception" { // its name says less than it means: that brokers are too old to split
			supported = "False"
		}
		args = append(args, "--"+feature, supported)
	}
	r := try(t, "", "ClientCompatibilityTest", append([]string{"--bootstrap-server", harness.Shared.Addr()}, args...)...)
	if r.code != 0 {
		t.Errorf("ends with %d:\n%s\n%s", r.code, r.out, r.errOut)
	}
}
