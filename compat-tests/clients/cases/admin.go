package cases

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/barnabas-mq/barnabas/compat-tests/harness"
)

// admin makes a topic, changes it and deletes it. Kafka answers before its broker knows, so each step is waited for.
func admin(t *testing.T, ctx context.Context, c Client, adm Admin) {
	topic := harness.Name(t, "cases")
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	untilPartitions := func(want int) {
		t.Helper()
		listed := 0
		until(t, ctx, func() (ok bool, err error) {
			listed, err = adm.Partitions(ctx, topic)
			return listed == want, err
		}, func() string { return fmt.Sprintf("the topic is listed with %d partitions, not %d", listed, want) })
	}
	must("create", adm.CreateTopic(ctx, topic, partitions))
	untilPartitions(partitions)
	must("alter", adm.SetConfig(ctx, topic, "retention.ms", "3600000"))
	until(t, ctx, func() (bool, error) {
		value, err := adm.Config(ctx, topic, "retention.ms")
		return value == "3600000", err
	}, func() string { return "retention.ms is changed" })
	must("add partitions", adm.AddPartitions(ctx, topic, groupPartitions))
	untilPartitions(groupPartitions)
	harness.Settle(t, topic, groupPartitions)

	g := &groupOf{t: t, ctx: ctx, client: c, topic: topic, assignor: "range"}
	g.send(20)
	member := g.join()
	g.untilRead()
	g.leave(member)
	if lister, ok := adm.(GroupLister); ok {
		groups, err := lister.Groups(ctx)
		if err != nil || !slices.Contains(groups, "g-"+topic) {
			t.Errorf("the group is not among %q: %v", groups, err)
		}
	}
	must("delete", adm.DeleteTopic(ctx, topic))
	untilPartitions(0)
}
