package group

import (
	"bytes"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// commonProtocols tells which protocols all members know that were added. A change
// takes the time to read what that member knows: how much it is, is for the clients
// to say.
type commonProtocols struct {
	members, changes int
	// bytes is joinBytes of all that was added.
	bytes int
	known map[string]knownBy
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
	c.bytes += by * joinBytes(protocols)
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

// protocolBytes is what a protocol takes besides its name and its metadata.
const protocolBytes = 64

// joinBytes is about what a member's protocols take in memory.
func joinBytes(protocols []kmsg.JoinGroupRequestProtocol) (n int) {
	for i := range protocols {
		n += protocolBytes + len(protocols[i].Name) + len(protocols[i].Metadata)
	}
	return n
}

// ownProtocols is a copy for a member to keep: a request's own would keep all of the
// request in memory.
func ownProtocols(protocols []kmsg.JoinGroupRequestProtocol) []kmsg.JoinGroupRequestProtocol {
	own := slices.Clone(protocols)
	for i := range own {
		own[i].Metadata = bytes.Clone(own[i].Metadata)
	}
	return own
}

// memberBytes is what a group counts for in soft.memberBytes.
func (m *Machine) memberBytes(group string) int {
	if g := m.soft.groups[group]; g != nil {
		return g.common.bytes
	}
	return 0
}

// hasRoom says that a member may know what it wants to join with. One that comes again
// with no more than before always may.
func (s *step) hasRoom(r *kmsg.JoinGroupRequest) bool {
	more := joinBytes(r.Protocols)
	if g := s.soft.groups[r.Group]; g != nil {
		m := g.member(r.MemberID)
		if r.InstanceID != nil {
			m = g.static(*r.InstanceID)
		}
		if m != nil {
			more -= joinBytes(m.protocols)
		}
	}
	return more <= 0 || s.soft.memberBytes+more <= s.cfg.MaxMemberBytes
}
