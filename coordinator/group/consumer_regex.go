package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/pattern"
)

// regexEveryMs bounds how often the regular expressions of one group are held
// against all topics because new ones were made.
const regexEveryMs = 1000

// maxRegexesSize bounds the compiled expressions that are kept, in instructions:
// about 3 MB.
const maxRegexesSize = 2 * pattern.MaxSize

// regexes are compiled expressions.
type regexes struct {
	byText map[string]pattern.Pattern
	size   int
}

// regex is a compiled expression, or why there is none.
func (s *step) regex(expr string) (pattern.Pattern, error) {
	kept := &s.soft.regexes
	if re, ok := kept.byText[expr]; ok {
		return re, nil
	}
	re, err := pattern.Compile(expr)
	if err != nil {
		return re, err
	}
	// The text is kept as well, and what every expression takes.
	cost := re.Size + len(expr)/16 + 32
	if kept.byText == nil || kept.size+cost > maxRegexesSize {
		*kept = regexes{byText: map[string]pattern.Pattern{}}
	}
	kept.byText[expr] = re
	kept.size += cost
	return re, nil
}

// checkRegex refuses an expression that a member subscribes by for the first time
// and that is none. An empty one means no expression.
func (c *change) checkRegex(before, now string) *refusal {
	if now == "" || now == before || c.g.subscribed.regexes[now] > 0 {
		return nil
	}
	if _, err := c.regex(now); err != nil {
		return refuse(kerr.InvalidRegularExpression, "SubscribedTopicRegex %q: %v.", now, err)
	}
	return nil
}

// dropRegex removes an expression that nobody uses any more.
func (c *change) dropRegex(expr string) {
	if expr != "" && c.g.regexes[expr] != nil && c.g.subscribed.regexes[expr] == 0 {
		c.put(&ConsumerRecord{kind: kindRegex, name: expr})
	}
}

// resolveRegexes holds the group's expressions against all topics, when one of
// them is new, when topics were made, and now and then. In Kafka this goes on
// beside the heartbeat and the next one sees it; here a member has its topics at
// once.
func (c *change) resolveRegexes() {
	used := c.g.usedRegexes()
	if len(used) == 0 {
		return
	}
	soft, now, at := c.remembered(c.id), c.nowMs(), c.world.Image.Offset
	fresh := slices.ContainsFunc(used, func(expr string) bool { return c.g.regexes[expr] == nil })
	since := now - soft.resolvedAtMs
	switch {
	case fresh, soft.resolvedAt < 0, since < 0:
	case soft.resolvedAt < c.world.TopicsAt && since >= regexEveryMs:
	case since > int64(c.cfg.Consumer.RegexRefreshIntervalMs):
	default:
		return
	}
	for _, expr := range used {
		topics := c.matching(expr)
		old := c.g.regexes[expr]
		if old != nil && slices.Equal(old.topics, topics) {
			continue
		}
		c.put(&ConsumerRecord{kind: kindRegex, name: expr, value: &regexValue{topics: topics, version: at, timestampMs: now}})
		c.bump = c.bump || old != nil || len(topics) > 0
	}
	c.later(func() {
		soft := c.remember(c.id)
		soft.resolvedAt, soft.resolvedAtMs = at, now
	})
}

// matching are the topics that an expression means, in order. One that another
// coordinator took and this one cannot read means none.
func (c *change) matching(expr string) []string {
	re, err := c.regex(expr)
	if err != nil {
		return nil
	}
	var names []string
	for t := range c.world.Image.Topics() {
		if re.MatchString(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}
