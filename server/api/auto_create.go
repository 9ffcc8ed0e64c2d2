package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// autoCreateTimeoutMs is how long the controller may take to create a topic
// that somebody merely asked for; Kafka's request.timeout.ms.
const autoCreateTimeoutMs = 30_000

// createMissing asks the controller for topics with the defaults of the broker
// and calls done once it has decided, on any goroutine. Whether a topic exists
// then is for the image to say: another client may have created it just now.
// The coordinators' topics are made with their own settings.
func (h *Handlers) createMissing(names []string, done func()) {
	if i := slices.IndexFunc(names, protocol.IsInternalTopic); i >= 0 {
		rest := slices.Delete(slices.Clone(names), i, i+1)
		h.ensureTopic(names[i], func(error) { h.createMissing(rest, done) })
		return
	}
	if len(names) == 0 {
		done()
		return
	}
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
			h.Log.Warn("auto-creating topics failed", "topics", len(names), "first", names[0], "error", err)
		}
		done()
	})
}

// creatable are the names that auto-creation may make a topic of: valid ones,
// but no topic of a coordinator that this broker does not have yet.
func creatable(names []string) []string {
	var out []string
	for _, name := range names {
		if protocol.CheckTopicName(name) == nil && name != protocol.ShareGroupStateTopic {
			out = append(out, name)
		}
	}
	return out
}
