package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"
)

func groupCommand() *cli.Command {
	return &cli.Command{
		Name: "group", Usage: "list, describe, reset and delete consumer groups",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list groups", Action: groupList, Flags: clientFlags()},
			{Name: "describe", Usage: "show members, committed offsets and lag", ArgsUsage: "GROUP...", Action: groupDescribe, Flags: clientFlags()},
			{
				Name: "reset", Usage: "move a stopped group's offsets", ArgsUsage: "GROUP", Action: groupReset,
				Description: "Without --execute it shows what would change.",
				Flags: clientFlags(
					&cli.StringFlag{Name: "to", Usage: "start, end, an `OFFSET`, +N or -N from the committed offset, or @TIME"},
					&cli.StringSliceFlag{Name: "topic", Aliases: []string{"t"}, Usage: "only `TOPIC`, or TOPIC:PARTITION; may be repeated; default all the group has committed"},
					&cli.BoolFlag{Name: "execute", Usage: "commit the new offsets"},
				),
			},
			{
				Name: "delete", Usage: "delete groups, or their offsets for some topics", ArgsUsage: "GROUP...", Action: groupDelete,
				Flags: clientFlags(&cli.StringSliceFlag{Name: "topic", Aliases: []string{"t"}, Usage: "delete only the offsets of `TOPIC`; may be repeated"}),
			},
		},
	}
}

func groupList(c *cli.Context) error {
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		groups, err := adm.ListGroups(ctx)
		if err != nil {
			return fmt.Errorf("list groups: %w", err)
		}
		type row struct {
			Group string `json:"group"`
			State string `json:"state"`
			Type  string `json:"protocol_type"`
		}
		rows := []row{}
		t := newTable("GROUP", "STATE", "PROTOCOL")
		for _, g := range groups.Sorted() {
			rows = append(rows, row{g.Group, g.State, g.ProtocolType})
			t.add(g.Group, g.State, orDash(g.ProtocolType))
		}
		return show(c, rows, func(w io.Writer) error {
			if len(rows) == 0 {
				_, err := fmt.Fprintln(w, "No groups yet. `barnabas consume TOPIC --group NAME` makes one.")
				return err
			}
			return t.print(w)
		})
	})
}

// groupView is what `group describe` shows of one group.
type groupView struct {
	Group    string       `json:"group"`
	State    string       `json:"state"`
	Protocol string       `json:"protocol"`
	TotalLag int64        `json:"total_lag"`
	Members  []memberView `json:"members"`
	Offsets  []offsetView `json:"offsets"`
}

type memberView struct {
	MemberID   string  `json:"member_id"`
	InstanceID *string `json:"instance_id"`
	ClientID   string  `json:"client_id"`
	Host       string  `json:"host"`
	Partitions int     `json:"partitions"`
}

// offsetView is one partition of a group; -1 means unknown or not committed.
type offsetView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`
	MemberID  string `json:"member_id,omitempty"`
}

func groupDescribe(c *cli.Context) error {
	groups, err := names(c, "group")
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		lags, err := adm.Lag(ctx, groups...)
		if err != nil {
			return fmt.Errorf("describe: %w", err)
		}
		var failed []string
		views := []groupView{}
		for _, l := range lags.Sorted() {
			switch {
			case l.Error() != nil:
				failed = append(failed, describeFailure(l.Group, l.Error(), ""))
			case l.State == "Dead":
				failed = append(failed, describeFailure(l.Group, kerr.GroupIDNotFound, ""))
			default:
				views = append(views, viewGroup(l))
			}
		}
		if len(views) > 0 {
			if err := show(c, views, func(w io.Writer) error { return printGroups(w, views) }); err != nil {
				return err
			}
		}
		return failures("describe", failed)
	})
}

func viewGroup(l kadm.DescribedGroupLag) groupView {
	v := groupView{Group: l.Group, State: l.State, Protocol: l.Protocol, TotalLag: l.Lag.Total(), Members: []memberView{}, Offsets: []offsetView{}}
	for _, m := range l.Members {
		mv := memberView{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/")}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				mv.Partitions += len(t.Partitions)
			}
		}
		v.Members = append(v.Members, mv)
	}
	for _, p := range l.Lag.Sorted() {
		o := offsetView{Topic: p.Topic, Partition: p.Partition, Committed: p.Commit.At, End: p.End.Offset, Lag: p.Lag}
		if p.Member != nil {
			o.MemberID = p.Member.MemberID
		}
		v.Offsets = append(v.Offsets, o)
	}
	return v
}

func printGroups(w io.Writer, views []groupView) error {
	for i, v := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s  %s, %s, lag %d\n", v.Group, v.State, plural(len(v.Members), "member"), v.TotalLag)
		if len(v.Members) > 0 {
			t := newTable("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
			for _, m := range v.Members {
				instance := "-"
				if m.InstanceID != nil {
					instance = *m.InstanceID
				}
				t.add(m.MemberID, instance, orDash(m.ClientID), m.Host, m.Partitions)
			}
			if err := t.print(w); err != nil {
				return err
			}
		}
		if len(v.Offsets) > 0 {
			t := newTable("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER")
			for _, o := range v.Offsets {
				t.add(o.Topic, o.Partition, orUnknown(o.Committed), orUnknown(o.End), orUnknown(o.Lag), orDash(o.MemberID))
			}
			if err := t.print(w); err != nil {
				return err
			}
		}
	}
	return nil
}

func groupDelete(c *cli.Context) error {
	groups, err := names(c, "group")
	if err != nil {
		return err
	}
	topics := c.StringSlice("topic")
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		var failed []string
		if len(topics) > 0 {
			failed, err = deleteOffsets(ctx, adm, groups, topics)
		} else {
			failed, err = deleteGroups(ctx, adm, groups)
		}
		if err != nil {
			return err
		}
		if err := failures("delete", failed); err != nil {
			return err
		}
		return show(c, map[string]any{"deleted": groups, "topics": topics}, func(w io.Writer) error {
			what := strings.Join(groups, ", ")
			if len(topics) > 0 {
				what = "offsets of " + strings.Join(topics, ", ") + " in " + what
			}
			_, err := fmt.Fprintf(w, "Deleted %s.\n", what)
			return err
		})
	})
}

func deleteGroups(ctx context.Context, adm *kadm.Client, groups []string) (failed []string, err error) {
	responses, err := adm.DeleteGroups(ctx, groups...)
	if err != nil {
		return nil, fmt.Errorf("delete groups: %w", err)
	}
	for _, r := range responses.Sorted() {
		if r.Err != nil {
			failed = append(failed, describeFailure(r.Group, r.Err, ""))
		}
	}
	return failed, nil
}

func deleteOffsets(ctx context.Context, adm *kadm.Client, groups, topics []string) (failed []string, err error) {
	details, err := adm.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return nil, fmt.Errorf("delete offsets: %w", err)
	}
	for _, g := range groups {
		responses, err := adm.DeleteOffsets(ctx, g, details.TopicsSet())
		if err != nil {
			failed = append(failed, describeFailure(g, err, ""))
			continue
		}
		for topic, partitions := range responses {
			for partition, err := range partitions {
				if err != nil {
					failed = append(failed, describeFailure(fmt.Sprintf("%s: %s partition %d", g, topic, partition), err, ""))
				}
			}
		}
	}
	return failed, nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orUnknown(n int64) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
