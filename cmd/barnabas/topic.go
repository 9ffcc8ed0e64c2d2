package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"
)

func topicCommand() *cli.Command {
	return &cli.Command{
		Name: "topic", Usage: "create, list, describe, alter and delete topics",
		Subcommands: []*cli.Command{
			{
				Name: "create", Usage: "create topics", ArgsUsage: "TOPIC...", Action: topicCreate,
				Flags: clientFlags(
					&cli.IntFlag{Name: "partitions", Aliases: []string{"p"}, Value: -1, Usage: "number of partitions; -1 is the broker's num.partitions", Action: within("partitions", 1, mostPartitions, -1)},
					&cli.IntFlag{Name: "replication-factor", Aliases: []string{"r"}, Value: -1, Usage: "copies of each partition; -1 is the broker's default", Action: within("replication-factor", 1, mostReplicas, -1)},
					&cli.StringSliceFlag{Name: "config", Aliases: []string{"c"}, Usage: "topic setting `KEY=VALUE`; may be repeated"},
					&cli.BoolFlag{Name: "if-not-exists", Usage: "an existing topic is no error"},
				),
			},
			{
				Name: "list", Usage: "list topics", Action: topicList,
				Flags: clientFlags(&cli.BoolFlag{Name: "internal", Usage: "show internal topics too"}),
			},
			{
				Name: "describe", Usage: "show partitions, offsets, size and settings", ArgsUsage: "TOPIC...", Action: topicDescribe,
				Flags: clientFlags(),
			},
			{
				Name: "alter", Usage: "add partitions or change settings", ArgsUsage: "TOPIC", Action: topicAlter,
				Flags: clientFlags(
					&cli.IntFlag{Name: "partitions", Aliases: []string{"p"}, DefaultText: "as they are", Usage: "new number of partitions", Action: within("partitions", 1, mostPartitions)},
					&cli.StringSliceFlag{Name: "config", Aliases: []string{"c"}, Usage: "set `KEY=VALUE`; may be repeated"},
					&cli.StringSliceFlag{Name: "unset", Usage: "return `KEY` to its default; may be repeated"},
				),
			},
			{
				Name: "delete", Usage: "delete topics and their data", ArgsUsage: "TOPIC...", Action: topicDelete,
				Flags: clientFlags(
					&cli.BoolFlag{Name: "if-exists", Usage: "a missing topic is no error"},
					&cli.BoolFlag{Name: "force", Usage: "also internal topics, with which the offsets of all groups or all transactions go"}),
			},
		},
	}
}

// names are what the command's arguments name, at least one, each one time.
func names(c *cli.Context, noun string) ([]string, error) {
	list, err := arguments(c, noun)
	return once(list), err
}

// arguments are the command's arguments as they stand, at least one.
func arguments(c *cli.Context, noun string) ([]string, error) {
	if c.NArg() == 0 {
		return nil, usagef("%s: name at least one %s", c.Command.FullName(), noun)
	}
	return c.Args().Slice(), nil
}

// once are the names in the order in which they were given, each one time.
func once(list []string) []string {
	var out []string
	for _, name := range list {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// keyValues reads KEY=VALUE; where is the flag or the command that they were given to.
func keyValues(where string, list []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usagef("%s %q: want KEY=VALUE, for example retention.ms=3600000", where, kv)
		}
		out[k] = &v
	}
	return out, nil
}

// topicRow is a topic in a list.
type topicRow struct {
	Topic      string `json:"topic"`
	ID         string `json:"id"`
	Partitions int    `json:"partitions"`
	Replicas   int    `json:"replicas"`
}

func rowOf(d kadm.TopicDetail) topicRow {
	return topicRow{Topic: d.Topic, ID: topicID(d.ID), Partitions: len(d.Partitions), Replicas: d.Partitions.NumReplicas()}
}

func topicList(c *cli.Context) error {
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		list := adm.ListTopics
		if c.Bool("internal") {
			list = adm.ListTopicsWithInternal
		}
		details, err := list(ctx)
		if err != nil {
			return fmt.Errorf("list topics: %w", err)
		}
		rows := []topicRow{}
		t := newTable("TOPIC", "PARTITIONS", "REPLICAS")
		for _, d := range details.Sorted() {
			rows = append(rows, rowOf(d))
			t.add(d.Topic, len(d.Partitions), d.Partitions.NumReplicas())
		}
		return show(c, rows, func(w io.Writer) error {
			if len(rows) == 0 {
				_, err := fmt.Fprintln(w, "No topics yet. `barnabas topic create NAME` makes one, and so does producing to a new name.")
				return err
			}
			return t.print(w)
		})
	})
}

func topicAlter(c *cli.Context) error {
	topics, err := names(c, "topic")
	if err != nil {
		return err
	}
	set, err := keyValues("--config", c.StringSlice("config"))
	if err != nil {
		return err
	}
	if !c.IsSet("partitions") && len(set) == 0 && len(c.StringSlice("unset")) == 0 {
		return usagef("topic alter: say what to change with --partitions, --config or --unset")
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		changes := configChanges(set, c.StringSlice("unset"))
		failed, err := refusedChanges(ctx, adm, topics, c.Int("partitions"), changes)
		if err != nil {
			return err
		}
		if len(failed) == 0 {
			if failed, err = alterTopics(ctx, adm, topics, c.Int("partitions"), changes); err != nil {
				return err
			}
		}
		if err := failures("alter", failed); err != nil {
			return err
		}
		return show(c, map[string]any{"altered": topics}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "Altered %s.\n", strings.Join(topics, ", "))
			return err
		})
	})
}

// refusedChanges are the changes that the broker would not take, so that nothing is
// done by halves.
func refusedChanges(ctx context.Context, adm *kadm.Client, topics []string, partitions int, changes []kadm.AlterConfig) (failed []string, err error) {
	if failed, err = unknownTopicKeys(ctx, adm, topics, changes); err != nil || len(failed) > 0 {
		return failed, err
	}
	if partitions > 0 {
		responses, err := adm.ValidateUpdatePartitions(ctx, partitions, topics...)
		if err != nil {
			return nil, fmt.Errorf("check partitions: %w", err)
		}
		failed = failedPartitions(responses)
	}
	if len(changes) == 0 {
		return failed, nil
	}
	responses, err := adm.ValidateAlterTopicConfigs(ctx, changes, topics...)
	if err != nil {
		return nil, fmt.Errorf("check settings: %w", err)
	}
	return append(failed, failedChanges(responses)...), nil
}

func failedPartitions(responses kadm.CreatePartitionsResponses) (failed []string) {
	for _, r := range responses.Sorted() {
		if r.Err != nil {
			failed = append(failed, describeFailure(r.Topic, r.Err, r.ErrMessage))
		}
	}
	return failed
}

func failedChanges(responses kadm.AlterConfigsResponses) (failed []string) {
	for _, r := range responses {
		if r.Err != nil {
			failed = append(failed, describeFailure(r.Name, r.Err, r.ErrMessage))
		}
	}
	return failed
}

// alterTopics adds partitions, unless that is 0, and then changes settings. When the
// second fails, the first is among what failed as what was done.
func alterTopics(ctx context.Context, adm *kadm.Client, topics []string, partitions int, changes []kadm.AlterConfig) (failed []string, err error) {
	done := ""
	if partitions > 0 {
		responses, err := adm.UpdatePartitions(ctx, partitions, topics...)
		if err != nil {
			return nil, fmt.Errorf("add partitions: %w", err)
		}
		failed = failedPartitions(responses)
		done = fmt.Sprintf("there are %s now, but the settings are as they were", plural(partitions, "partition"))
	}
	if len(changes) == 0 || len(failed) > 0 {
		return failed, nil
	}
	responses, err := adm.AlterTopicConfigs(ctx, changes, topics...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("change settings: %w", err), halfDone(done))
	}
	if failed = failedChanges(responses); len(failed) > 0 && done != "" {
		failed = append(failed, done)
	}
	return failed, nil
}

func halfDone(done string) error {
	if done == "" {
		return nil
	}
	return errors.New(done)
}

// unknownTopicKeys are the changes of keys that no topic has.
func unknownTopicKeys(ctx context.Context, adm *kadm.Client, topics []string, changes []kadm.AlterConfig) (failed []string, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	described, err := adm.DescribeTopicConfigs(ctx, topics[0])
	if err != nil || len(described) == 0 {
		return nil, fmt.Errorf("look up the settings: %w", err)
	}
	if described[0].Err != nil {
		return []string{describeFailure(described[0].Name, described[0].Err, described[0].ErrMessage)}, nil
	}
	for _, change := range changes {
		if why := unknownKey(change.Name, described[0].Configs); why != "" {
			failed = append(failed, why)
		}
	}
	return failed, nil
}

func configChanges(set map[string]*string, unset []string) []kadm.AlterConfig {
	var changes []kadm.AlterConfig
	for k, v := range set {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: k, Value: v})
	}
	for _, k := range unset {
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: k})
	}
	sort.Slice(changes, func(i, j int) bool { return changes[i].Name < changes[j].Name })
	return changes
}

// refuseInternal keeps topics that hold what others rely on from a slip.
func refuseInternal(ctx context.Context, adm *kadm.Client, topics []string) error {
	details, err := adm.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return fmt.Errorf("delete: look up the topics: %w", err)
	}
	for _, d := range details.Sorted() {
		if d.IsInternal {
			return fmt.Errorf("delete: nothing was deleted: %s is internal, and with it go the committed offsets of all groups or the state of all transactions; --force deletes it all the same", d.Topic)
		}
	}
	return nil
}

func topicDelete(c *cli.Context) error {
	topics, err := names(c, "topic")
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		if !c.Bool("force") {
			if err := refuseInternal(ctx, adm, topics); err != nil {
				return err
			}
		}
		responses, err := adm.DeleteTopics(ctx, topics...)
		if err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		failed, deleted, missing := []string{}, []string{}, []string{}
		for _, name := range topics {
			r, ok := responses[name]
			switch {
			case !ok:
			case r.Err == nil:
				deleted = append(deleted, r.Topic)
			case c.Bool("if-exists") && kadmCode(r.Err) == "UNKNOWN_TOPIC_OR_PARTITION":
				missing = append(missing, r.Topic)
			default:
				failed = append(failed, describeFailure(r.Topic, r.Err, r.ErrMessage))
			}
		}
		err = show(c, map[string]any{"deleted": deleted, "missing": missing}, func(w io.Writer) error {
			if len(deleted) > 0 {
				fmt.Fprintf(w, "Deleted %s.\n", strings.Join(deleted, ", "))
			}
			if len(missing) > 0 {
				fmt.Fprintf(w, "There is no topic %s: nothing to delete.\n", strings.Join(missing, ", "))
			}
			return nil
		})
		if err != nil {
			return err
		}
		return failures("delete", failed)
	})
}
