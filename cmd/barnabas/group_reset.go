package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"
)

// resetView is one partition of `group reset`.
type resetView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"` // -1: nothing committed
	To        int64  `json:"to"`
	// Asked is the offset that --to meant, where the partition does not reach there.
	Asked *int64 `json:"asked,omitempty"`
}

func groupReset(c *cli.Context) error {
	groups, err := names(c, "group")
	if err != nil {
		return err
	}
	if len(groups) != 1 {
		return usagef("group reset: one group at a time")
	}
	if c.String("to") == "" {
		return usagef("group reset: say where to with --to: start, end, an offset, +N, -N or @TIME")
	}
	target, err := parseTarget(c.String("to"))
	if err != nil {
		return err
	}
	only, err := partitionFilter("--topic", c.StringSlice("topic"))
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		if err := stopped(ctx, c, adm, groups[0]); err != nil {
			return err
		}
		rows, err := planReset(ctx, adm, groups[0], target, only)
		if err != nil {
			return err
		}
		if c.Bool("execute") {
			if err := commitReset(ctx, adm, groups[0], rows); err != nil {
				return err
			}
		}
		return show(c, map[string]any{"group": groups[0], "executed": c.Bool("execute"), "offsets": rows}, func(w io.Writer) error {
			t := newTable("TOPIC", "PARTITION", "FROM", "TO")
			for _, r := range rows {
				t.add(r.Topic, r.Partition, orUnknown(r.From), r.To)
			}
			if err := t.print(w); err != nil {
				return err
			}
			for _, r := range rows {
				if r.Asked != nil {
					fmt.Fprintf(c.App.ErrWriter, "%s partition %d does not reach to offset %d: %d is the nearest.\n", r.Topic, r.Partition, *r.Asked, r.To)
				}
			}
			if !c.Bool("execute") {
				_, err := fmt.Fprintln(w, "Nothing was changed. Add --execute to commit these offsets.")
				return err
			}
			return nil
		})
	})
}

// resetTarget is where --to points; exactly one field is meaningful.
type resetTarget struct {
	kind   string // start, end, offset, shift, time
	number int64
}

func parseTarget(to string) (resetTarget, error) {
	switch {
	case to == "start" || to == "end":
		return resetTarget{kind: to}, nil
	case strings.HasPrefix(to, "@"):
		ms, err := parseTimeMs(to[1:])
		if err != nil {
			return resetTarget{}, usagef("--to %q: %v", to, err)
		}
		return resetTarget{kind: "time", number: ms}, nil
	}
	n, err := strconv.ParseInt(to, 10, 64)
	if err != nil {
		return resetTarget{}, usagef("--to %q: want start, end, an offset, +N, -N or @TIME", to)
	}
	if to[0] == '+' || to[0] == '-' {
		return resetTarget{kind: "shift", number: n}, nil
	}
	return resetTarget{kind: "offset", number: n}, nil
}

// partitionFilter reads TOPIC and TOPIC:PARTITION; an empty set of partitions
// means all of the topic. flag is where they were given.
func partitionFilter(flag string, list []string) (map[string]map[int32]bool, error) {
	only := map[string]map[int32]bool{}
	for _, s := range list {
		topic, number, ok := strings.Cut(s, ":")
		if only[topic] == nil {
			only[topic] = map[int32]bool{}
		}
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 {
			return nil, usagef("%s %q: want TOPIC or TOPIC:PARTITION", flag, s)
		}
		only[topic][int32(n)] = true
	}
	return only, nil
}

func planReset(ctx context.Context, adm *kadm.Client, group string, target resetTarget, only map[string]map[int32]bool) ([]resetView, error) {
	committed, err := adm.FetchOffsets(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("reset %s: committed offsets: %w", group, err)
	}
	topics := committed.Offsets().TopicsSet().Topics()
	if len(only) > 0 {
		topics = sortedKeys(only)
	}
	if len(topics) == 0 {
		return nil, fmt.Errorf("reset: group %s has no committed offsets; name topics with --topic", group)
	}
	if err := partitionsExist(ctx, adm, topics, only); err != nil {
		return nil, err
	}
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("reset %s: start offsets: %w", group, err)
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("reset %s: end offsets: %w", group, err)
	}
	at := starts
	if target.kind == "time" {
		if at, err = adm.ListOffsetsAfterMilli(ctx, target.number, topics...); err != nil {
			return nil, fmt.Errorf("reset %s: offsets by time: %w", group, err)
		}
	}
	rows := []resetView{}
	for _, end := range ends.Offsets().Sorted() {
		if p := only[end.Topic]; len(p) > 0 && !p[end.Partition] {
			continue
		}
		row := resetView{Topic: end.Topic, Partition: end.Partition, From: -1}
		if o, ok := committed.Lookup(end.Topic, end.Partition); ok {
			row.From = o.At
		}
		start, _ := starts.Lookup(end.Topic, end.Partition)
		timed, _ := at.Lookup(end.Topic, end.Partition)
		asked, err := target.resolve(row, start.Offset, end.At, timed.Offset)
		if err != nil {
			return nil, err
		}
		if row.To = min(max(asked, start.Offset), end.At); row.To != asked {
			row.Asked = &asked
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// resolve is the offset that is meant, wherever the partition begins and ends.
func (t resetTarget) resolve(row resetView, start, end, timed int64) (int64, error) {
	to := end
	switch t.kind {
	case "start":
		to = start
	case "offset":
		to = t.number
	case "time":
		to = timed
	case "shift":
		if row.From < 0 {
			return 0, fmt.Errorf("reset: %s partition %d has no committed offset to shift from; use --to start, end or an offset", row.Topic, row.Partition)
		}
		to = row.From + min(t.number, math.MaxInt64-row.From) // no sum is more than a number can be
	}
	return to, nil
}

// stopped refuses to move a group that consumes; a plan only says so.
func stopped(ctx context.Context, c *cli.Context, adm *kadm.Client, group string) error {
	found, _, err := lookAtGroups(ctx, adm, []string{group})
	if err != nil {
		return fmt.Errorf("reset %s: %w", group, err)
	}
	members := len(found[group].Members)
	if members == 0 {
		return nil
	}
	text := fmt.Sprintf("group %s is in use by %s; stop its consumers first", group, plural(members, "member"))
	if c.Bool("execute") {
		return fmt.Errorf("reset: %s", text)
	}
	_, err = fmt.Fprintf(c.App.ErrWriter, "The %s.\n", text)
	return err
}

// partitionsExist refuses topics and partitions that are not there.
func partitionsExist(ctx context.Context, adm *kadm.Client, topics []string, only map[string]map[int32]bool) error {
	details, err := adm.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return fmt.Errorf("reset: look up the topics: %w", err)
	}
	var failed []string
	for _, topic := range topics {
		d := details[topic]
		if d.Err != nil {
			failed = append(failed, describeFailure(topic, d.Err, ""))
			continue
		}
		for _, p := range slices.Sorted(maps.Keys(only[topic])) {
			if _, ok := d.Partitions[p]; !ok {
				failed = append(failed, fmt.Sprintf("%s: there is no partition %d; it has %s", topic, p, plural(len(d.Partitions), "partition")))
			}
		}
	}
	return failures("reset", failed)
}

func commitReset(ctx context.Context, adm *kadm.Client, group string, rows []resetView) error {
	var offsets kadm.Offsets
	for _, r := range rows {
		offsets.Add(kadm.Offset{Topic: r.Topic, Partition: r.Partition, At: r.To, LeaderEpoch: -1})
	}
	if err := adm.CommitAllOffsets(ctx, group, offsets); err != nil {
		return fmt.Errorf("reset: %s", describeFailure(group, err, ""))
	}
	return nil
}
