package tools

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// member joins a group, reads all of a topic and commits; it stays until the test ends or leave is called.
func member(t *testing.T, group, topic string, records int, opts ...kgo.Opt) (leave func()) {
	t.Helper()
	cl := client(t, append(opts, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ClientID("tools-test"))...)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for got := 0; got < records; {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		got += fetches.NumRecords()
	}
	if err := cl.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	return cl.Close
}

const groupTool = "consumer.group.ConsumerGroupCommand"

func TestConsumerGroups(t *testing.T) {
	for _, protocol := range []string{"classic", "consumer"} {
		t.Run(protocol, func(t *testing.T) {
			topic := newTopic(t, 2)
			base := time.Now().Add(-time.Hour).Truncate(time.Second)
			fill(t, topic, 2, 10, base)
			group := "g-" + topic
			opts := []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}
			if protocol == "consumer" {
				opts = append(opts, kgo.WithContext(context.WithValue(context.Background(), "opt_in_kafka_next_gen_balancer_beta", true)))
			}
			leave := member(t, group, topic, 20, opts...)
			fill(t, topic, 1, 5, base.Add(time.Minute))

			row(t, tool(t, groupTool, "--list"), group)
			line := row(t, tool(t, groupTool, "--list", "--state", "stable", "--type", protocol), group)
			if len(line) > 2 && !strings.EqualFold(strings.Join(line[1:3], " "), protocol+" stable") {
				t.Errorf("listed as %q", line)
			}
			line = row(t, tool(t, groupTool, "--describe", "--group", group), group, topic, "0")
			if len(line) > 5 && strings.Join(line[2:6], " ") != "0 10 15 5" {
				t.Errorf("partition, offset, end and lag are %q", line)
			}
			row(t, tool(t, groupTool, "--describe", "--group", group), group, topic, "1")
			row(t, tool(t, groupTool, "--describe", "--group", group, "--state"), group, "Stable", "1")
			row(t, tool(t, groupTool, "--describe", "--group", group, "--members", "--verbose"), group, "tools-test", "2")
			row(t, tool(t, "GroupsCommand", "--list"), group)
			want(t, tool(t, groupTool, "--delete", "--group", group), "could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException")
			leave()
			row(t, tool(t, groupTool, "--describe", "--group", group, "--state"), group, "Empty", "0")
			resets(t, group, topic, base)

			want(t, tool(t, groupTool, "--delete-offsets", "--group", group, "--topic", topic+":1"), "Request succeeded for deleting offsets")
			if out := tool(t, groupTool, "--describe", "--group", group); strings.Contains(out, topic+" 1 ") {
				t.Errorf("offsets are left:\n%s", out)
			}
			want(t, tool(t, groupTool, "--delete", "--group", group), "Deletion of requested consumer groups ('"+group+"') was successful.")
			if out := tool(t, groupTool, "--list"); strings.Contains(out, group) {
				t.Errorf("it is still listed:\n%s", out)
			}
		})
	}
}

func resets(t *testing.T, group, topic string, base time.Time) {
	for to, offset := range map[string]string{
		"--to-earliest": "0", "--to-latest": "15", "--to-offset 3": "3", "--shift-by 2": "5", "--to-current": "5",
		"--to-datetime " + base.Add(6500*time.Millisecond).UTC().Format("2006-01-02T15:04:05.000"): "7",
	} {
		if strings.HasPrefix(to, "--shift") || to == "--to-current" {
			tool(t, groupTool, "--reset-offsets", "--group", group, "--topic", topic+":0", "--to-offset", map[bool]string{true: "5", false: "3"}[to == "--to-current"], "--execute")
		}
		args := append([]string{"--reset-offsets", "--group", group, "--topic", topic + ":0", "--execute"}, strings.Fields(to)...)
		line := row(t, tool(t, groupTool, args...), group, topic, "0")
		if len(line) > 3 && line[3] != offset {
			t.Errorf("%s resets to %q, want %s", to, line, offset)
		}
	}
	plan := tool(t, groupTool, "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--dry-run", "--export")
	for p := range 2 {
		want(t, plan, fmt.Sprintf("%s,%d,0\n", topic, p))
	}
	tool(t, groupTool, "--reset-offsets", "--group", group, "--from-file", file(t, fmt.Sprintf("%s,0,8\n", topic)), "--execute")
	line := row(t, tool(t, groupTool, "--describe", "--group", group), group, topic, "0")
	if len(line) > 5 && strings.Join(line[2:6], " ") != "0 8 15 7" {
		t.Errorf("after the reset from a file: %q", line)
	}
}

func TestRemoveMember(t *testing.T) {
	topic := newTopic(t, 1)
	group := harness.Name(t, "group")
	fill(t, topic, 1, 1, time.Now())
	member(t, group, topic, 1, kgo.Balancers(kgo.RangeBalancer()), kgo.InstanceID("one"))
	row(t, tool(t, groupTool, "--describe", "--group", group, "--members"), group, "one")
}
