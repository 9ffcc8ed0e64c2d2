package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// advice says what to do about the Kafka errors that people meet most.
var advice = map[int16]string{
	kerr.TopicAlreadyExists.Code:       "`barnabas topic describe` shows it; --if-not-exists accepts it",
	kerr.UnknownTopicOrPartition.Code:  "`barnabas topic list` shows what exists",
	kerr.MessageTooLarge.Code:          "`barnabas config set -t TOPIC max.message.bytes=N` has a topic take larger ones, `barnabas serve --set message.max.bytes=N` all topics",
	kerr.NonEmptyGroup.Code:            "stop the group's consumers first; `barnabas group describe` shows who they are",
	kerr.GroupIDNotFound.Code:          "`barnabas group list` shows what exists",
	kerr.InvalidReplicationFactor.Code: "one broker can hold one copy: use --replication-factor 1 or leave it out",
	kerr.GroupSubscribedToTopic.Code:   "stop the consumers that read the topic first",
	kerr.TransactionalIDNotFound.Code:  "`barnabas txn list` shows what exists",
	kerr.KafkaStorageError.Code:        "the broker's disk failed or is full: its log says which file",
}

// kadmCode is the name of the Kafka error in err, "" for none.
func kadmCode(err error) string {
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Message
	}
	return ""
}

// describeFailure is one line on one thing that failed: what, why, what to do.
func describeFailure(what string, err error, message string) string {
	var b strings.Builder
	b.WriteString(what + ": ")
	var k *kerr.Error
	if !errors.As(err, &k) {
		b.WriteString(err.Error())
		return b.String()
	}
	b.WriteString(k.Message)
	if message != "" && message != k.Message {
		b.WriteString(" (" + message + ")")
	} else {
		b.WriteString(" (" + k.Description + ")")
	}
	if a, ok := advice[k.Code]; ok {
		b.WriteString("; " + a)
	}
	return b.String()
}

// failures is one error for everything that failed, nil when nothing did.
func failures(verb string, failed []string) error {
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%s failed for %s", verb, strings.Join(failed, "\n  "))
}
