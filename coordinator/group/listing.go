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
	states := slices.Clone(r.StatesFilter)
	for i := range states {
		states[i] = strings.TrimSpace(states[i]) // as Kafka does with states, and with states only
	}
	req := ListGroups{States: NewFilter(states), Types: NewFilter(r.TypesFilter)}
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

// Filter has the values that it lets through, in lower case.
type Filter map[string]struct{}

// NewFilter takes a filter as a request has it: without regard to case.
func NewFilter(values []string) Filter {
	if len(values) == 0 {
		return nil
	}
	f := make(Filter)
	for _, v := range values {
		f[strings.ToLower(v)] = struct{}{}
	}
	return f
}

// passes tells whether the filter lets a value through.
func (f Filter) passes(value string) bool {
	_, ok := f[strings.ToLower(value)]
	return ok || f == nil
}
