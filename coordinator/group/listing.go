package group

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListGroups lists the groups of all partitions that this broker leads. The
// answer is an error as a whole while one of them is loading.
func (c *Coordinator) ListGroups(r *kmsg.ListGroupsRequest, done func(*kmsg.ListGroupsResponse)) {
	partitions := c.rt.Partitions()
	l := &listing{resp: kmsg.NewPtrListGroupsResponse(), left: len(partitions) + 1, done: done}
	req := ListGroups{States: r.StatesFilter, Types: r.TypesFilter}
	for _, p := range partitions {
		event := func(call uint64) Event { return Event{Call: call, Request: req} }
		c.rt.Submit(p, event, func(a Answer, err error) {
			groups, _ := a.Response.([]kmsg.ListGroupsResponseGroup)
			l.add(groups, err)
		})
	}
	l.add(nil, nil)
}

// listing gathers the partitions' answers.
type listing struct {
	done func(*kmsg.ListGroupsResponse)

	mu   sync.Mutex
	left int
	resp *kmsg.ListGroupsResponse
}

func (l *listing) add(groups []kmsg.ListGroupsResponseGroup, err error) {
	l.mu.Lock()
	switch {
	case err == nil:
		l.resp.Groups = append(l.resp.Groups, groups...)
	case !errors.Is(err, kerr.NotCoordinator):
		// A partition that went to another broker is listed there.
		l.resp.ErrorCode = codeOf(err).Code
	}
	l.left--
	last := l.left == 0
	l.mu.Unlock()
	if !last {
		return
	}
	if l.resp.ErrorCode != 0 {
		l.resp.Groups = nil
	}
	slices.SortFunc(l.resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return strings.Compare(a.Group, b.Group) })
	l.done(l.resp)
}
