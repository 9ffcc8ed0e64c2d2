package group

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ListGroups lists the groups of all partitions that this broker leads. The
// answer is an error as a whole while one of them is loading.
func (c *Coordinator) ListGroups(r *kmsg.ListGroupsRequest, done func(*kmsg.ListGroupsResponse)) {
	resp := kmsg.NewPtrListGroupsResponse()
	req := ListGroups{States: r.StatesFilter, Types: r.TypesFilter}
	event := func(call uint64) Event { return Event{Call: call, Request: req} }
	c.rt.Gather(c.rt.Partitions(), event, func(a Answer) {
		groups, _ := a.Response.([]kmsg.ListGroupsResponseGroup)
		resp.Groups = append(resp.Groups, groups...)
	}, func(err error) {
		if err != nil {
			resp.ErrorCode, resp.Groups = codeOf(err).Code, nil
		}
		slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return strings.Compare(a.Group, b.Group) })
		done(resp)
	})
}
