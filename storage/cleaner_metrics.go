package storage

import "github.com/barnabas-mq/barnabas/storage/compact"

func (c *cleaner) sinceLastRun() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.env.Clock.Now().Sub(c.lastRun).Seconds()
}

// uncleanable are the logs that were given up.
func (c *cleaner) uncleanable() []*Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	logs := make([]*Log, 0, len(c.spoilt))
	for l := range c.spoilt {
		if l.Err() == nil {
			logs = append(logs, l)
		}
	}
	return logs
}

func (c *cleaner) uncleanableBytes() float64 {
	var sum int64
	for _, l := range c.uncleanable() {
		if p, err := l.compactionPlan(); err == nil {
			sum += p.DirtyBytes
		}
	}
	return float64(sum)
}

// most is the largest value over the workers' last rounds.
func (c *cleaner) most(of func(st compact.Stats, seconds float64) float64) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	largest := 0.0
	for i := range c.last {
		largest = max(largest, of(c.last[i], c.elapsed[i].Seconds()))
	}
	return largest
}

func (c *cleaner) recopyPercent() float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var read, written int64
	for _, st := range c.last {
		read, written = read+st.BytesRead, written+st.BytesWritten
	}
	return 100 * float64(written) / float64(max(read, 1))
}
