package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/urfave/cli/v2"

	"github.com/barnabas-mq/barnabas/server/config"
)

// createdRow is a topic that `topic create` made, or with --if-not-exists found.
type createdRow struct {
	topicRow
	Created bool `json:"created"`
}

func topicCreate(c *cli.Context) error {
	topics, err := names(c, "topic")
	if err != nil {
		return err
	}
	configs, err := keyValues("--config", c.StringSlice("config"))
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		responses, err := adm.CreateTopics(ctx, int32(c.Int("partitions")), int16(c.Int("replication-factor")), configs, topics...)
		if err != nil {
			return fmt.Errorf("create %s: %w", strings.Join(topics, ", "), err)
		}
		rows, failed, err := createdRows(ctx, adm, topics, responses, c.Bool("if-not-exists"))
		if err != nil {
			return err
		}
		t := newTable("TOPIC", "PARTITIONS", "REPLICAS", "ID")
		for _, r := range rows {
			note := ""
			if !r.Created {
				note = ", exists already"
			}
			t.add(r.Topic, r.Partitions, r.Replicas, r.ID+note)
		}
		if len(rows) > 0 {
			if err := show(c, rows, t.print); err != nil {
				return err
			}
		}
		return failures("create", failed)
	})
}

// createdRows are the topics in the order in which they were named, and a line on each
// that failed. Those that exist are looked up when that is no failure.
func createdRows(ctx context.Context, adm *kadm.Client, topics []string, responses kadm.CreateTopicResponses, existingToo bool) (rows []createdRow, failed []string, err error) {
	var existing kadm.TopicDetails
	for _, name := range topics {
		r, ok := responses[name]
		if !ok {
			continue
		}
		switch {
		case r.Err == nil:
			rows = append(rows, createdRow{topicRow{name, topicID(r.ID), int(r.NumPartitions), int(r.ReplicationFactor)}, true})
		case existingToo && kadmCode(r.Err) == "TOPIC_ALREADY_EXISTS":
			if existing == nil {
				if existing, err = adm.ListTopicsWithInternal(ctx, topics...); err != nil {
					return nil, nil, fmt.Errorf("create: look up the topics: %w", err)
				}
			}
			d := existing[name]
			if d.Err != nil {
				failed = append(failed, describeFailure(name, d.Err, ""))
				continue
			}
			rows = append(rows, createdRow{rowOf(d), false})
		default:
			failed = append(failed, describeFailure(name, r.Err, r.ErrMessage)+meantSetting(r.ErrMessage))
		}
	}
	return rows, failed, nil
}

// meantSetting adds to a broker's refusal of a setting that it does not know the one
// that is probably meant.
func meantSetting(message string) string {
	key, ok := strings.CutPrefix(message, "Unknown topic config name: ")
	if !ok {
		return ""
	}
	if near := config.Nearest(key, config.TopicNames()); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; docs/config.md lists them, and so does `barnabas config get --all -t TOPIC`"
}
