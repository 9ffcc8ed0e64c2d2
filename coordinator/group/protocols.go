package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// commonProtocols tells which protocols all members know that were added. A change
// takes the time to read what that member knows: how much it is, is for the clients
// to say.
type commonProtocols struct {
	members, changes int
	known            map[string]knownBy
}

// knownBy is how many members know a protocol, and the last change that saw it.
type knownBy struct{ members, change int }

// add takes in what one member knows, remove takes it out again.
func (c *commonProtocols) add(protocols []kmsg.JoinGroupRequestProtocol) { c.count(protocols, 1) }

func (c *commonProtocols) remove(protocols []kmsg.JoinGroupRequestProtocol) {
	c.count(protocols, -1)
	for i := range protocols {
		if name := protocols[i].Name; c.known[name].members == 0 {
			delete(c.known, name)
		}
	}
}

func (c *commonProtocols) count(protocols []kmsg.JoinGroupRequestProtocol, by int) {
	if c.known == nil {
		c.known = make(map[string]knownBy, len(protocols))
	}
	c.changes++
	c.members += by
	for i := range protocols {
		name := protocols[i].Name
		if k := c.known[name]; k.change != c.changes { // a duplicate counts once
			c.known[name] = knownBy{members: k.members + by, change: c.changes}
		}
	}
}

func (c *commonProtocols) has(protocol string) bool { return c.known[protocol].members == c.members }

// hasOne tells whether any of the protocols is one that all know.
func (c *commonProtocols) hasOne(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return c.has(p.Name) })
}
