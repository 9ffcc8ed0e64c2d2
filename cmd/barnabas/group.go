package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"
)

func groupCommand() *cli.Command {
	return &cli.Command{
		Name: "group", Usage: "list, describe, reset and delete consumer groups",
		Subcommands: []*cli.Command{
			{Name: "list", Usage: "list groups", Action: groupList, Flags: clientFlags()},
			{Name: "describe", Usage: "show members, committed offsets and lag", ArgsUsage: "GROUP...", Action: groupDescribe, Flags: clientFlags(),
				Description: "A partition in which nothing is committed counts with all that it holds, also where no member has it.\n" +
					"Of the consumer protocol (KIP-848) it shows the group's epoch, which rises with each change of members or topics,\n" +
					"for which epoch partitions were assigned last, and by which assignor."},
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
			Kind  string `json:"type"`
			Type  string `json:"protocol_type"`
		}
		rows := []row{}
		t := newTable("GROUP", "STATE", "TYPE", "PROTOCOL TYPE")
		for _, g := range groups.Sorted() {
			rows = append(rows, row{g.Group, g.State, g.GroupType, g.ProtocolType})
			t.add(g.Group, g.State, orDash(g.GroupType), orDash(g.ProtocolType))
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

func groupDelete(c *cli.Context) error {
	groups, err := names(c, "group")
	if err != nil {
		return err
	}
	topics := append([]string{}, c.StringSlice("topic")...) // none is [] in JSON
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
