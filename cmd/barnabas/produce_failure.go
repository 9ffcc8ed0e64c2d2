package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// failure says why not everything was sent, and how much was; nil when all was.
func (s *sender) failure(topic string, flushErr error) error {
	failed := s.failed.Load()
	if failed == nil && flushErr == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), min(s.patience, answerTimeout))
	defer cancel()
	after := ", after " + plural(int(s.sent.Load()), "acknowledged record")
	var k *kerr.Error
	if failed == nil || !errors.As(failed.err, &k) {
		if err := s.client.Ping(ctx); err != nil {
			return fmt.Errorf("produce: %w%s%s", nobodyAt(s.brokers, err), after, startHint)
		}
	}
	switch {
	case failed == nil && s.ctx.Err() != nil:
		return fmt.Errorf("produce: interrupted before the broker acknowledged everything%s", after)
	case failed == nil:
		return fmt.Errorf("produce: the broker did not acknowledge everything within %v%s", s.patience, after)
	}
	return fmt.Errorf("produce: %s%s", s.explain(ctx, topic, failed), after)
}

// stopped is err, which ended the input, after what was read before it is sent.
func (s *sender) stopped(topic string, err error) error {
	var usage *usageError
	if errors.As(err, &usage) {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	if err := s.failure(topic, s.client.Flush(ctx)); err != nil {
		return err
	}
	return fmt.Errorf("produce: %w; %s sent before it", err, plural(int(s.sent.Load()), "record"))
}

// explain is one line on a record that could not be sent. The client library drops
// the broker's own message, so the usual reasons are looked up.
func (s *sender) explain(ctx context.Context, topic string, failed *sendFailure) string {
	text := describeFailure(topic, failed.err, "")
	adm := kadm.NewClient(s.client)
	var k *kerr.Error
	switch {
	case !errors.As(failed.err, &k) && s.partition >= 0:
		details, err := adm.ListTopicsWithInternal(ctx, topic)
		if n := len(details[topic].Partitions); err == nil && n > 0 && int(s.partition) >= n {
			return noPartition(topic, n, s.partition)
		}
	case errors.Is(failed.err, kerr.InvalidTopicException) && !isTopicName(topic):
		return fmt.Sprintf("%q can't be a topic's name: want up to 249 of the letters a-z and A-Z, digits, dots, _ and -, but not . or .. alone", topic)
	case errors.Is(failed.err, kerr.InvalidRecord) && failed.record.Key == nil:
		configs, err := adm.DescribeTopicConfigs(ctx, topic)
		if err == nil && isCompacted(configs, topic) {
			return text + "; the topic is compacted, so every record needs a key: give one with --key (-k), or take it from each line with --key-separator (-K)"
		}
	}
	return text
}

// isTopicName says whether a topic may have this name.
func isTopicName(name string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return name != "" && name != "." && name != ".." && len(name) <= 249 && strings.Trim(name, allowed) == ""
}
