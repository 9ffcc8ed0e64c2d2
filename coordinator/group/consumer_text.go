package group

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/coordinator/group/assignor"
)

// String is the record for people, topics by their ids as Kafka writes them.
func (c *ConsumerRecord) String() string {
	s := c.kind.String()
	if c.kind.named() {
		s += fmt.Sprintf(" %q", c.name)
	}
	switch v := c.value.(type) {
	case *epochValue:
		return fmt.Sprintf("%s: %d", s, v.epoch)
	case *memberMetadata:
		return s + ": " + v.text()
	case *targetEpochValue:
		return fmt.Sprintf("%s: %d", s, v.epoch)
	case *targetValue:
		return fmt.Sprintf("%s: %s", s, assignmentText(v.partitions))
	case *currentValue:
		return fmt.Sprintf("%s: epoch %d, before %d, %v, has %s, gives back %s", s, v.epoch, v.previousEpoch, v.state,
			assignmentText(v.assigned.partitions()), assignmentText(v.revoking.partitions()))
	case *regexValue:
		return fmt.Sprintf("%s: %s", s, strings.Join(v.topics, " "))
	case nil:
		return s + " deleted"
	}
	return s
}

func (v *memberMetadata) text() string {
	s := fmt.Sprintf("client %s at %s", v.clientID, v.clientHost)
	if len(v.topics) > 0 {
		s += ", topics " + strings.Join(v.topics, " ")
	}
	if v.regex != "" {
		s += fmt.Sprintf(", expression %q", v.regex)
	}
	if v.instanceID != nil {
		s += ", instance " + *v.instanceID
	}
	if v.assignor != nil {
		s += ", assignor " + *v.assignor
	}
	if v.classic != nil {
		s += ", classic protocol"
	}
	return s
}

func (s memberState) String() string {
	switch s {
	case stateStable:
		return "stable"
	case stateUnrevoked:
		return "unrevoked"
	case stateUnreleased:
		return "unreleased"
	}
	return "unknown"
}

func assignmentText(a assignor.Assignment) string {
	if len(a) == 0 {
		return "nothing"
	}
	var words []string
	for _, id := range a.TopicIDs() {
		words = append(words, fmt.Sprintf("%s%v", base64.RawURLEncoding.EncodeToString(id[:]), a[id]))
	}
	return strings.Join(words, " ")
}
