package importer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/cluster/controller"
	"github.com/barnabas-mq/barnabas/coordinator/group"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/protocol/batch"
	"github.com/barnabas-mq/barnabas/storage"
	"github.com/barnabas-mq/barnabas/storage/segment"
)

// Node is the target while it is changed.
type Node interface {
	Target
	Dir() string
	// Strays are partitions' folders that no topic has.
	Strays() []storage.Stray
	DiscardStray(s storage.Stray) error
	// Adopt moves copies into their places.
	Adopt(list []storage.Adoption) error
	ImportTopic(t controller.ImportedTopic) error
	ImportOffsets(e group.Exported) error
}

// Progress is told of work as it is done; its methods run on one goroutine.
type Progress interface {
	// Topic begins a topic, Moved says that more of it was read, Done that it is
	// there or, with an error, that it is not.
	Topic(t *TopicPlan)
	Moved(n int64)
	Done(t *TopicPlan, err error)
}

// Check reads and checks all partitions and changes nothing.
func (p *Plan) Check(ctx context.Context, target Target, progress Progress) error {
	return p.each(ctx, progress, func(t *TopicPlan) error {
		for _, part := range t.Partitions {
			if err := p.read(ctx, t, part, "", progress.Moved); err != nil {
				return err
			}
		}
		t.conclude(target)
		return nil
	})
}

// Import takes the topics over, one after another. A topic that cannot be read is
// left out and the others go on; the error names it.
func (p *Plan) Import(ctx context.Context, node Node, progress Progress) error {
	fsys := p.source.fs
	staging := filepath.Join(node.Dir(), storage.ImportFolder)
	// What an import left behind that was interrupted.
	if err := fsys.RemoveAll(staging); err != nil {
		return err
	}
	if len(p.Topics) == 0 {
		return nil
	}
	if err := p.room(fsys, node.Dir()); err != nil {
		return err
	}
	if err := vfs.MkdirAllSync(fsys, staging, 0o755); err != nil {
		return err
	}
	err := p.each(ctx, progress, func(t *TopicPlan) error { return p.importTopic(ctx, node, t, staging, progress) })
	return errors.Join(err, fsys.RemoveAll(staging))
}

// each does something for every topic. An end that was asked for ends it.
func (p *Plan) each(ctx context.Context, progress Progress, do func(t *TopicPlan) error) error {
	var errs []error
	for _, t := range p.Topics {
		progress.Topic(t)
		err := do(t)
		t.Taken = err == nil
		progress.Done(t, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("topic %s: %w", t.Name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// room makes sure that the copies fit.
func (p *Plan) room(fsys vfs.FS, dir string) error {
	free, _, err := fsys.Usage(dir)
	if err != nil {
		return err
	}
	if need := p.SizeBytes(); uint64(need) > free {
		return fmt.Errorf("the topics have %d MiB, and %s has room for %d MiB: choose fewer with --topic, or another folder with --data", need>>20, dir, free>>20)
	}
	return nil
}

// read reads a partition and, with a folder, copies it there.
func (p *Plan) read(ctx context.Context, t *TopicPlan, part *PartitionPlan, to string, moved func(int64)) error {
	tr := transfer{ctx: ctx, s: p.source, c: part.copy, files: part.files, to: to, moved: moved}
	c, err := tr.run(t.ID)
	if err != nil {
		return fmt.Errorf("partition %d: %w", part.Index, err)
	}
	part.Contents = &c
	return nil
}

// importTopic copies a topic beside the others, writes what groups have committed
// for it, and then lets it appear. Only the last step counts: until then there is
// no such topic.
func (p *Plan) importTopic(ctx context.Context, node Node, t *TopicPlan, staging string, progress Progress) error {
	var adopt []storage.Adoption
	fsys := p.source.fs
	for _, part := range t.Partitions {
		tp := storage.TopicPartition{Topic: t.Name, Partition: part.Index}
		to := filepath.Join(staging, tp.String())
		if err := p.read(ctx, t, part, to, progress.Moved); err != nil {
			return errors.Join(err, fsys.RemoveAll(to))
		}
		adopt = append(adopt, storage.Adoption{
			TopicPartition: tp, Path: to,
			LogStartOffset: part.Contents.LogStartOffset, LogEndOffset: part.Contents.LogEndOffset,
		})
	}
	if err := fsys.SyncDir(staging); err != nil {
		return err
	}
	t.conclude(node)
	for _, e := range t.Offsets {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := node.ImportOffsets(e); err != nil {
			return fmt.Errorf("offsets of group %q: %w", e.Group, err)
		}
	}
	if err := t.makePlace(node); err != nil {
		return err
	}
	if err := node.Adopt(adopt); err != nil {
		return err
	}
	return node.ImportTopic(t.record(p.source.catalog.nextProducerID))
}

// makePlace removes folders that an interrupted import of the same topic has left
// where the partitions go.
func (t *TopicPlan) makePlace(node Node) error {
	for _, s := range node.Strays() {
		if s.Topic != t.Name {
			continue
		}
		if s.TopicID != t.ID {
			return fmt.Errorf("the folder %s of another topic is in the way, which no topic of the target has: move it away", s.Path)
		}
		if err := node.DiscardStray(s); err != nil {
			return err
		}
	}
	return nil
}

// record is the topic as the metadata gets it. Its leader epochs follow those in
// the logs, and no new producer gets an id that is in them.
func (t *TopicPlan) record(nextProducerID int64) controller.ImportedTopic {
	made := controller.ImportedTopic{Name: t.Name, ID: t.ID, Configs: t.Configs, NextProducerID: nextProducerID}
	for _, part := range t.Partitions {
		made.LeaderEpochs = append(made.LeaderEpochs, max(part.leaderEpoch, part.Contents.LatestEpoch, 0))
		if id := part.Contents.MaxProducerID; id != batch.NoProducerID {
			made.NextProducerID = max(made.NextProducerID, id+1)
		}
	}
	return made
}

// conclude adds what was found to the notes.
func (t *TopicPlan) conclude(target Target) {
	cfg := target.LogConfig(t.Configs)
	var lost doomed
	for _, part := range t.Partitions {
		c := part.Contents
		if c.Converted > 0 {
			t.note("partition %d: %d segments had messages of format v0 or v1; they are batches of format v2 now, at the same offsets", part.Index, c.Converted)
		}
		if c.CutBytes > 0 {
			t.note("partition %d: %d bytes at its end were not whole when the broker died and are left out, as Kafka's recovery does", part.Index, c.CutBytes)
		}
		for _, o := range c.Open {
			t.note("partition %d: producer %d (epoch %d) has a transaction open since offset %d, which nobody will end: "+
				"readers with read_committed stop there until `barnabas txn abort --partition %s:%d --start-offset %d` ends it",
				part.Index, o.ProducerID, o.ProducerEpoch, o.FirstOffset, t.Name, part.Index, o.FirstOffset)
		}
		lost.add(c.doomed(cfg, target.NowMs()))
	}
	t.noteDoomed(lost, cfg)
}

func isCorrupt(err error) bool {
	var bad *segment.CorruptError
	return errors.As(err, &bad)
}
