package importer

import (
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/storage"
)

// doomed is how many bytes the target's retention would delete in its first round.
type doomed struct{ byAge, bySize int64 }

func (d *doomed) add(o doomed) {
	d.byAge += o.byAge
	d.bySize += o.bySize
}

// doomed follows storage's retention over what was read: oldest first, the active
// segment too, which is rolled when everything before it goes.
func (c *Contents) doomed(cfg storage.LogConfig, nowMs int64) (d doomed) {
	if !cfg.Delete {
		return d
	}
	excess := int64(-1)
	if cfg.RetentionBytes >= 0 {
		excess = c.SizeBytes - cfg.RetentionBytes
	}
	for i, s := range c.Segments {
		last := i == len(c.Segments)-1
		switch {
		case !last && s.EndOffset <= c.LogStartOffset: // deleted already
		case last && s.SizeBytes == 0:
			return d
		case excess > 0 && excess >= s.SizeBytes:
			d.bySize += s.SizeBytes
		case s.tooOld(cfg, nowMs):
			d.byAge += s.SizeBytes
		default:
			return d
		}
		excess -= s.SizeBytes
	}
	return d
}

// tooOld of a segment without timestamps goes by its file's age, and the copy is new.
func (s SegmentAge) tooOld(cfg storage.LogConfig, nowMs int64) bool {
	return cfg.RetentionMs >= 0 && s.MaxTimestampMs >= 0 && nowMs-s.MaxTimestampMs > cfg.RetentionMs
}

// noteDoomed warns of what retention would delete soon after the broker's start, with
// what keeps it: there is no broker yet that could be told with `config set`.
func (t *TopicPlan) noteDoomed(d doomed, cfg storage.LogConfig) {
	t.noteLoss(d.byAge, "older than", "retention.ms", cfg.RetentionMs)
	t.noteLoss(d.bySize, "more than", "retention.bytes", cfg.RetentionBytes)
}

func (t *TopicPlan) noteLoss(lostBytes int64, how, key string, value int64) {
	if lostBytes == 0 {
		return
	}
	advice := fmt.Sprintf("start it with `barnabas serve --set log.%s=-1` to keep them", key)
	if _, own := t.Configs[key]; own {
		advice = fmt.Sprintf("to keep them, start it with `barnabas serve --set log.retention.check.interval.ms=%d` and then do `barnabas config set -t %s %s=-1`",
			(24 * time.Hour).Milliseconds(), t.Name, key)
	}
	t.note("%s are %s its %s of %d here allows, and the broker will delete them soon after its start: %s", sizeText(lostBytes), how, key, value, advice)
}

// noteFollowers tells of topics that follow the broker's retention: what Kafka's own
// server.properties says is not in its data folder.
func (p *Plan) noteFollowers(target Target) {
	var names []string
	var retentionMs int64
	for _, t := range p.Topics {
		cfg := target.LogConfig(t.Configs)
		if _, own := t.Configs["retention.ms"]; !own && cfg.Delete && cfg.RetentionMs >= 0 {
			names, retentionMs = append(names, t.Name), cfg.RetentionMs
		}
	}
	if len(names) > 0 {
		p.source.note("topics without a retention.ms of their own follow the broker's, here log.retention.ms=%d: %s. If Kafka's server.properties had another, "+
			"which its data folder does not tell, give that file to import and serve with --config, or set it with --set", retentionMs, someOf(names))
	}
}

func sizeText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
