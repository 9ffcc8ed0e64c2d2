package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// commonProtocols tells which protocols all members know that were added. It takes
// the time to read all of them once: their number is for the clients to say.
type commonProtocols struct {
	members int
	// known is how many members know each protocol that the first one knows.
	known map[string]int
}

// add takes in what one member knows.
func (c *commonProtocols) add(protocols []kmsg.JoinGroupRequestProtocol) {
	if c.known == nil {
		c.known = make(map[string]int, len(protocols))
	}
	for i := range protocols {
		// One that all before know, and no duplicate.
		if name := protocols[i].Name; c.known[name] == c.members {
			c.known[name] = c.members + 1
		}
	}
	c.members++
}

func (c *commonProtocols) has(protocol string) bool { return c.known[protocol] == c.members }

// hasOne tells whether any of the protocols is one that all know.
func (c *commonProtocols) hasOne(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return c.has(p.Name) })
}
