package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/urfave/cli/v2"
)

// The types of groups, as Kafka names them.
const (
	typeClassic  = "classic"
	typeConsumer = "consumer"
)

// groupView is what `group describe` shows of one group. Protocol is the classic
// members' choice; the epochs and the assignor are those of a consumer group.
type groupView struct {
	Group           string       `json:"group"`
	Type            string       `json:"type"`
	State           string       `json:"state"`
	ProtocolType    string       `json:"protocol_type"`
	Protocol        string       `json:"protocol"`
	Epoch           int32        `json:"epoch,omitempty"`
	AssignmentEpoch int32        `json:"assignment_epoch,omitempty"`
	Assignor        string       `json:"assignor,omitempty"`
	TotalLag        int64        `json:"total_lag"`
	Members         []memberView `json:"members"`
	Offsets         []offsetView `json:"offsets"`
}

type memberView struct {
	MemberID   string  `json:"member_id"`
	InstanceID *string `json:"instance_id"`
	ClientID   string  `json:"client_id"`
	Host       string  `json:"host"`
	Partitions int     `json:"partitions"`
	// The others are those of a consumer group only: Type says which protocol a member of a consumer group uses.
	Type         string             `json:"type,omitempty"`
	Epoch        int32              `json:"epoch,omitempty"`
	Subscription string             `json:"subscription,omitempty"`
	Assignment   map[string][]int32 `json:"assignment,omitzero"`
	Target       map[string][]int32 `json:"target_assignment,omitzero"`
}

// offsetView is one partition of a group; -1 means unknown or not committed.
type offsetView struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`
	MemberID  string `json:"member_id,omitempty"`
}

func groupDescribe(c *cli.Context) error {
	groups, err := names(c, "group")
	if err != nil {
		return err
	}
	return withAdmin(c, func(ctx context.Context, adm *kadm.Client) error {
		found, missing, err := lookAtGroups(ctx, adm, groups)
		if err != nil {
			return fmt.Errorf("describe: %w", err)
		}
		var failed []string
		views := []groupView{}
		for _, name := range groups {
			if err := missing[name]; err != nil {
				failed = append(failed, describeFailure(name, err, ""))
				continue
			}
			views = append(views, found[name])
		}
		if len(views) > 0 {
			if err := show(c, views, func(w io.Writer) error { return printGroups(w, views) }); err != nil {
				return err
			}
		}
		return failures("describe", failed)
	})
}

// lookAtGroups describes groups of both kinds: each is in found, or in missing with
// the reason.
func lookAtGroups(ctx context.Context, adm *kadm.Client, groups []string) (found map[string]groupView, missing map[string]error, err error) {
	found, missing = map[string]groupView{}, map[string]error{}
	// A broker that does not know the request has classic groups only.
	described, _ := adm.DescribeConsumerGroups(ctx, groups...)
	var classic []string
	for _, name := range groups {
		d, ok := described[name]
		if !ok || d.Err != nil {
			classic = append(classic, name)
			continue
		}
		if found[name], err = viewConsumerGroup(ctx, adm, d); err != nil {
			return nil, nil, err
		}
	}
	if len(classic) == 0 {
		return found, missing, nil
	}
	lags, err := adm.Lag(ctx, classic...)
	if err != nil {
		return nil, nil, err
	}
	for _, l := range lags {
		switch {
		case l.Error() != nil:
			missing[l.Group] = l.Error()
		case l.State == "Dead":
			missing[l.Group] = kerr.GroupIDNotFound
		default:
			found[l.Group] = viewGroup(l)
		}
	}
	return found, missing, nil
}

func viewGroup(l kadm.DescribedGroupLag) groupView {
	v := groupView{
		Group: l.Group, Type: typeClassic, State: l.State, ProtocolType: l.ProtocolType, Protocol: l.Protocol, TotalLag: l.Lag.Total(),
		Members: []memberView{}, Offsets: []offsetView{},
	}
	for _, m := range l.Members {
		mv := memberView{MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/")}
		if a, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range a.Topics {
				mv.Partitions += len(t.Partitions)
			}
		}
		v.Members = append(v.Members, mv)
	}
	for _, p := range l.Lag.Sorted() {
		o := offsetView{Topic: p.Topic, Partition: p.Partition, Committed: p.Commit.At, End: p.End.Offset, Lag: p.Lag}
		if p.Member != nil {
			o.MemberID = p.Member.MemberID
		}
		v.Offsets = append(v.Offsets, o)
	}
	return v
}

// viewConsumerGroup adds the offsets, which a description does not have.
func viewConsumerGroup(ctx context.Context, adm *kadm.Client, d kadm.DescribedConsumerGroup) (groupView, error) {
	v := groupView{
		Group: d.Group, Type: typeConsumer, State: d.State, ProtocolType: "consumer", Epoch: d.Epoch, AssignmentEpoch: d.AssignmentEpoch, Assignor: d.AssignorName,
		Members: []memberView{}, Offsets: []offsetView{},
	}
	owners := map[offsetView]string{}
	for i := range d.Members {
		v.Members = append(v.Members, viewConsumerMember(&d.Members[i]))
		d.Members[i].Assignment.Each(func(topic string, p int32) {
			owners[offsetView{Topic: topic, Partition: p}] = d.Members[i].MemberID
		})
	}
	committed, err := adm.FetchOffsets(ctx, d.Group)
	if err != nil {
		return v, fmt.Errorf("offsets of %s: %w", d.Group, err)
	}
	all := committed.Offsets().TopicsSet()
	all.Merge(d.AssignedPartitions())
	topics := topicsOf(all, d.Members)
	if len(topics) == 0 {
		return v, nil
	}
	var some *kadm.ShardErrors
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil && !errors.As(err, &some) {
		return v, fmt.Errorf("starts of the partitions of %s: %w", d.Group, err)
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil && !errors.As(err, &some) {
		return v, fmt.Errorf("ends of the partitions of %s: %w", d.Group, err)
	}
	// A partition in which nothing is committed is behind by all that it holds.
	ends.Each(func(o kadm.ListedOffset) {
		if o.Err == nil {
			all.Add(o.Topic, o.Partition)
		}
	})
	for _, t := range all.Sorted() {
		for _, p := range t.Partitions {
			o := offsetView{Topic: t.Topic, Partition: p}
			o.MemberID = owners[o]
			v.Offsets = append(v.Offsets, lagOf(o, committed, starts, ends))
		}
	}
	for _, o := range v.Offsets {
		v.TotalLag += max(o.Lag, 0)
	}
	return v, nil
}

// topicsOf are the topics that a group has to do with: those it has committed in or
// has been assigned, and those its members name.
func topicsOf(known kadm.TopicsSet, members []kadm.ConsumerGroupMember) []string {
	topics := map[string]bool{}
	for t := range known {
		topics[t] = true
	}
	for i := range members {
		for _, t := range members[i].SubscribedTopics {
			topics[t] = true
		}
	}
	return sortedKeys(topics)
}

// lagOf fills in where a partition ends and how far the group is behind: all of
// it while nothing is committed.
func lagOf(o offsetView, committed kadm.OffsetResponses, starts, ends kadm.ListedOffsets) offsetView {
	o.Committed, o.End, o.Lag = -1, -1, -1
	if c, ok := committed.Lookup(o.Topic, o.Partition); ok && c.Err == nil {
		o.Committed = c.At
	}
	from := max(o.Committed, 0)
	if s, ok := starts.Lookup(o.Topic, o.Partition); ok && s.Err == nil {
		from = max(from, s.Offset)
	}
	if e, ok := ends.Lookup(o.Topic, o.Partition); ok && e.Err == nil {
		o.End, o.Lag = e.Offset, max(e.Offset-from, 0)
	}
	return o
}

func viewConsumerMember(m *kadm.ConsumerGroupMember) memberView {
	v := memberView{
		MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"),
		Type: typeConsumer, Epoch: m.MemberEpoch, Subscription: strings.Join(m.SubscribedTopics, ","),
		Assignment: partitionsByTopic(m.Assignment), Target: partitionsByTopic(m.TargetAssignment),
	}
	if m.MemberType == 0 {
		v.Type = typeClassic
	}
	if m.SubscribedTopicRegex != nil && *m.SubscribedTopicRegex != "" {
		v.Subscription = strings.TrimPrefix(v.Subscription+",/"+*m.SubscribedTopicRegex+"/", ",")
	}
	for _, partitions := range v.Assignment {
		v.Partitions += len(partitions)
	}
	return v
}

func partitionsByTopic(set kadm.TopicsSet) map[string][]int32 {
	out := map[string][]int32{}
	for _, t := range set.Sorted() {
		out[t.Topic] = t.Partitions
	}
	return out
}

func printGroups(w io.Writer, views []groupView) error {
	for i := range views {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printGroup(w, &views[i]); err != nil {
			return err
		}
	}
	return nil
}

func printGroup(w io.Writer, v *groupView) error {
	fmt.Fprintf(w, "%s  %s, %s, lag %d", v.Group, v.State, plural(len(v.Members), "member"), v.TotalLag)
	if v.Type == typeConsumer {
		fmt.Fprintf(w, ", epoch %d assigned %d by %s", v.Epoch, v.AssignmentEpoch, v.Assignor)
	}
	fmt.Fprintln(w)
	if len(v.Members) > 0 {
		if err := printMembers(w, v); err != nil {
			return err
		}
	}
	if len(v.Offsets) == 0 {
		return nil
	}
	t := newTable("TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "MEMBER")
	for _, o := range v.Offsets {
		t.add(o.Topic, o.Partition, orUnknown(o.Committed), orUnknown(o.End), orUnknown(o.Lag), orDash(o.MemberID))
	}
	return t.print(w)
}

// printMembers shows of a consumer group what each member is to get beside what
// it has.
func printMembers(w io.Writer, v *groupView) error {
	if v.Type != typeConsumer {
		t := newTable("MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
		for _, m := range v.Members {
			t.add(m.MemberID, orNone(m.InstanceID), orDash(m.ClientID), m.Host, m.Partitions)
		}
		return t.print(w)
	}
	t := newTable("MEMBER", "INSTANCE", "CLIENT", "HOST", "TYPE", "EPOCH", "SUBSCRIPTION", "PARTITIONS", "TARGET")
	for _, m := range v.Members {
		target := 0
		for _, partitions := range m.Target {
			target += len(partitions)
		}
		t.add(m.MemberID, orNone(m.InstanceID), orDash(m.ClientID), m.Host, m.Type, m.Epoch, orDash(m.Subscription), m.Partitions, target)
	}
	return t.print(w)
}

func orNone(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}
