package protocol

import "github.com/twmb/franz-go/pkg/kerr"

// maxTopicName keeps `<topic>-<partition>` within a file name.
const maxTopicName = 249

// CheckTopicName is nil for a name that Kafka allows a topic to have, else an
// INVALID_TOPIC_EXCEPTION.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return Errorf(kerr.InvalidTopicException, "Topic name is invalid: the empty string is not allowed")
	case name == "." || name == "..":
		return Errorf(kerr.InvalidTopicException, "Topic name is invalid: '%s' is not allowed", name)
	case len(name) > maxTopicName:
		return Errorf(kerr.InvalidTopicException, "Topic name is invalid: the length of '%s' is longer than the max allowed length %d", name, maxTopicName)
	}
	for i := range len(name) {
		if !topicNameByte(name[i]) {
			return Errorf(kerr.InvalidTopicException,
				"Topic name is invalid: '%s' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'", name)
		}
	}
	return nil
}

func topicNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '.' || b == '_' || b == '-'
}

// The topics that hold the coordinators' state.
const (
	ConsumerOffsetsTopic  = "__consumer_offsets"
	TransactionStateTopic = "__transaction_state"
	ShareGroupStateTopic  = "__share_group_state"
)

// IsInternalTopic says that a topic is one of the coordinators'.
func IsInternalTopic(name string) bool {
	return name == ConsumerOffsetsTopic || name == TransactionStateTopic || name == ShareGroupStateTopic
}
