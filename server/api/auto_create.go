package api

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/protocol"
)

// autoCreateTimeoutMs is how long the controller may take to create a topic
// that somebody merely asked for; Kafka's request.timeout.ms.
const autoCreateTimeoutMs = 30_000

// maxAutoCreating is how many topics may be on their way at a time: 2.5 MB of
// names of the greatest length. Who asks for more asks again anyway.
const maxAutoCreating = 10_000

// autoCreate has topics made that somebody asked for, with the defaults of the
// broker, and does not wait for it. The coordinators' topics are made with their
// own settings.
func (h *Handlers) autoCreate(names []string) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(req.MaxVersion())
	req.TimeoutMillis = autoCreateTimeoutMs
	var made []string
	for _, name := range h.autoCreating.add(names) {
		if protocol.IsInternalTopic(name) {
			h.ensureTopic(name, func(error) { h.autoCreating.remove(name) })
			continue
		}
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = name, -1, -1
		req.Topics, made = append(req.Topics, t), append(made, name)
	}
	if len(made) == 0 {
		return
	}
	h.Controller.Handle(req, func(_ kmsg.Response, err error) {
		if err != nil {
			h.Log.Warn("auto-creating topics failed", "topics", len(made), "first", made[0], "error", err)
		}
		h.autoCreating.remove(made...)
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

// autoCreating are the topics on their way, so that clients that ask again
// meanwhile do not have them made again.
type autoCreating struct {
	mu    sync.Mutex
	names map[string]struct{}
}

// add returns those names that were not on their way.
func (a *autoCreating) add(names []string) (added []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = map[string]struct{}{}
	}
	for _, name := range names {
		if _, ok := a.names[name]; !ok && len(a.names) < maxAutoCreating {
			a.names[name] = struct{}{}
			added = append(added, name)
		}
	}
	return added
}

func (a *autoCreating) remove(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		delete(a.names, name)
	}
}
