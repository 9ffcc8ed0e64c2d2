package group

import "iter"

// subscriptions counts what the members of a consumer group subscribe to. It
// follows from the members and the resolved expressions, and changes with each of
// them by as much as that one names: no event looks at the names of all members.
type subscriptions struct {
	topics topicCounts
	// regexes counts the members that subscribe by each expression.
	regexes map[string]int
}

// topicCount is how many members name a topic, and how many expressions in use
// mean it.
type topicCount struct{ byName, byRegex int }

// topicCounts are the topics that anybody subscribes to. The clone that an event
// decides on has its changes in over, so that it costs as much as it changes.
type topicCounts struct {
	base map[string]topicCount
	// over is nil for the machine's own; a zero count in it hides that of base.
	over map[string]topicCount
}

func newSubscriptions() subscriptions {
	return subscriptions{topics: topicCounts{base: map[string]topicCount{}}, regexes: map[string]int{}}
}

func (s subscriptions) clone() subscriptions {
	c := newSubscriptions()
	c.topics = s.topics.clone()
	for regex, n := range s.regexes {
		c.regexes[regex] = n
	}
	return c
}

// clone may be changed while the original stays as it is.
func (t topicCounts) clone() topicCounts {
	over := make(map[string]topicCount, len(t.over))
	for name, n := range t.over {
		over[name] = n
	}
	return topicCounts{base: t.base, over: over}
}

func (t topicCounts) get(name string) topicCount {
	if n, ok := t.over[name]; ok {
		return n
	}
	return t.base[name]
}

// add counts byName and byRegex more, or fewer.
func (t topicCounts) add(name string, byName, byRegex int) {
	n := t.get(name)
	n.byName += byName
	n.byRegex += byRegex
	switch {
	case t.over != nil:
		t.over[name] = n
	case n == topicCount{}:
		delete(t.base, name)
	default:
		t.base[name] = n
	}
}

// all yields each topic once.
func (t topicCounts) all() iter.Seq2[string, topicCount] {
	return func(yield func(string, topicCount) bool) {
		for name, n := range t.base {
			if _, hidden := t.over[name]; !hidden && !yield(name, n) {
				return
			}
		}
		for name, n := range t.over {
			if n != (topicCount{}) && !yield(name, n) {
				return
			}
		}
	}
}

// countMember adds a member's subscription, or takes it away with by -1.
func (g *consumerGroup) countMember(m *consumerMember, by int) {
	if m == nil {
		return
	}
	for _, t := range m.topics {
		g.subscribed.topics.add(t, by, 0)
	}
	if m.regex == "" {
		return
	}
	users := g.subscribed.regexes[m.regex] + by
	g.subscribed.regexes[m.regex] = users
	switch {
	case users == 0:
		delete(g.subscribed.regexes, m.regex)
		g.countRegex(m.regex, -1)
	case users == 1 && by > 0:
		g.countRegex(m.regex, 1)
	}
}

// countRegex does the same with what an expression means.
func (g *consumerGroup) countRegex(regex string, by int) {
	if r := g.regexes[regex]; r != nil {
		for _, t := range r.topics {
			g.subscribed.topics.add(t, 0, by)
		}
	}
}

// putRegex sets what an expression means; nil is that nobody knows.
func (g *consumerGroup) putRegex(regex string, v *regexValue) {
	used := g.subscribed.regexes[regex] > 0
	if used {
		g.countRegex(regex, -1)
	}
	if v == nil {
		delete(g.regexes, regex)
		return
	}
	g.regexes[regex] = v
	if used {
		g.countRegex(regex, 1)
	}
}

// topics yields everything that the members subscribe to, each once, topics that
// do not exist too.
func (g *consumerGroup) topics() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range g.subscribed.topics.all() {
			if !yield(name) {
				return
			}
		}
	}
}

// subscribedTo tells whether any member subscribes to a topic.
func (g *consumerGroup) subscribedTo(topic string) bool {
	return g.subscribed.topics.get(topic) != topicCount{}
}

// homogeneous tells, by Kafka's rule, whether all members have the same
// subscription: the same names and no expression, or the same expression and no
// names.
func (g *consumerGroup) homogeneous() bool {
	named := len(g.members)
	for _, users := range g.subscribed.regexes {
		if users < len(g.members) {
			return false
		}
		named = 0
	}
	for _, n := range g.subscribed.topics.all() {
		if n.byName != named {
			return false
		}
	}
	return true
}
