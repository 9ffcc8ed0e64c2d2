package importer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
)

// committed reads what groups have committed, by the group coordinator's own
// rules. Offsets of open transactions do not count and are told of.
func (s *Source) committed(ctx context.Context) ([]group.Exported, error) {
	var topic *catalogTopic
	for _, t := range s.catalog.topics {
		if t.name == group.Topic {
			topic = t
		}
	}
	if topic == nil {
		return nil, nil
	}
	var all []group.Exported
	for _, index := range sortedKeys(topic.partitions) {
		c, err := s.pick(topic, index)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", group.Topic, err)
		}
		groups, err := s.committedIn(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s-%d: %w", group.Topic, index, err)
		}
		for _, g := range groups {
			if g.Pending > 0 {
				s.note("group %q has offsets for %d partitions in a transaction that has not ended; they are not taken over", g.Group, g.Pending)
			}
		}
		all = append(all, groups...)
	}
	return all, nil
}

func (s *Source) committedIn(ctx context.Context, c *copyOf) ([]group.Exported, error) {
	files, err := s.list(c)
	if err != nil {
		return nil, err
	}
	m := group.New(group.DefaultConfig(), func() string { return "" })
	for i, base := range files.bases {
		err := s.replayOffsets(ctx, m, c, base, files.sizes[base])
		if err != nil && i == len(files.bases)-1 && !c.in.clean && isCorrupt(err) {
			s.note("%v: what follows was not whole when the broker died", err)
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	return m.Export(), nil
}

func (s *Source) replayOffsets(ctx context.Context, m *group.Machine, c *copyOf, base, sizeBytes int64) error {
	f, err := vfs.OpenRegular(s.fs, c.logPath(base))
	if err != nil {
		return err
	}
	defer f.Close()
	r := newBatchReader(f, c.logPath(base), sizeBytes, base)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := replayBatch(m, v); err != nil {
			return fmt.Errorf("%s, the batch at offset %d: %w", r.path, v.BaseOffset(), err)
		}
	}
}

func replayBatch(m *group.Machine, v batch.View) error {
	if v.IsControl() {
		marker, ok, err := batch.ParseMarker(v)
		if ok {
			m.ReplayMarker(v.ProducerID(), marker.Commit)
		}
		return err
	}
	return batch.Records(v, 0, func(rec batch.Record) error {
		r, ok, err := group.Codec{}.Decode(rec.Key, rec.Value)
		if err != nil || !ok {
			return err
		}
		if v.IsTransactional() {
			m.ReplayPending(rec.Offset, v.ProducerID(), r)
			return nil
		}
		m.Replay(rec.Offset, r)
		return nil
	})
}
