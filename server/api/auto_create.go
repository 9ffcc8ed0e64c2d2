package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// autoCreateTimeoutMs is how long the controller may take to create a topic
// that somebody merely asked for; Kafka's request.timeout.ms.
const autoCreateTimeoutMs = 30_000

// createMissing asks the controller for topics with the defaults of the broker
// and calls done once it has decided, on any goroutine. Whether a topic exists
// then is for the image to say: another client may have created it just now.
func (h *Handlers) createMissing(names []string, done func()) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(req.MaxVersion())
	req.TimeoutMillis = autoCreateTimeoutMs
	for _, name := range names {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
		req.Topics = append(req.Topics, t)
	}
	h.Controller.Handle(req, func(_ kmsg.Response, err error) {
		if err != nil {
			h.Log.Warn("auto-creating topics failed", "topics", names, "error", err)
		}
		done()
	})
}

// creatable are the names that auto-creation may make a topic of. The
// coordinators' topics are made by who needs them, with their own settings.
func creatable(names []string) []string {
	var out []string
	for _, name := range names {
		if protocol.CheckTopicName(name) == nil && !protocol.IsInternalTopic(name) {
			out = append(out, name)
		}
	}
	return out
}
