package quorum

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/kv"
)

const (
	// The library wants these two even where nothing ticks.
	heartbeatTicks = 2
	electionTicks  = 10
	// applyBytes bounds how much is applied in one step.
	applyBytes = 1 << 20
	// queuedProposals is enough for one proposer that waits for each outcome.
	queuedProposals = 16
)

// firstIndex is where a new log starts: after a first snapshot that says who
// votes.
const firstIndex = 1

// Node is one member. Its goroutine owns the consensus state, the store and the
// calls to the state machine.
type Node struct {
	opts  Options
	store *store
	raft  *raft.RawNode
	// pending is written with the first batch that follows.
	pending []kv.Op

	applied, appliedTerm uint64
	sinceSnapshot        int
	// announced is the term whose leadership the machine has heard of.
	announced uint64
	// waiting are the proposals that are not yet applied, oldest first; index
	// is 0 until the log has given them one.
	waiting []*proposal

	proposals chan *proposal
	stop      chan struct{}
	stopOnce  sync.Once
	done      chan struct{}
	err       error

	status atomic.Pointer[Status]
}

var _ Log = (*Node)(nil)

type proposal struct {
	term  uint64
	data  []byte
	index uint64
	// outcome is buffered: the proposer may have gone.
	outcome chan error
}

// Open loads the log, or makes one whose only voter is this node, gives the
// machine everything committed, and campaigns. A lone voter leads when Open
// returns.
func Open(o Options) (*Node, error) {
	n := &Node{
		opts: o, store: &store{db: o.DB},
		proposals: make(chan *proposal, queuedProposals), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if n.opts.SnapshotEntries == 0 {
		n.opts.SnapshotEntries = defaultSnapshotEntries
	}
	if n.opts.SnapshotBytes == 0 {
		n.opts.SnapshotBytes = defaultSnapshotBytes
	}
	if err := n.open(); err != nil {
		return nil, fmt.Errorf("open metadata log: %w", err)
	}
	go n.run()
	return n, nil
}

func (n *Node) open() (err error) {
	defer n.readFailed(&err)
	fresh, err := n.store.load()
	if err != nil {
		return err
	}
	if fresh {
		if err := n.found(); err != nil {
			return err
		}
	} else if err := n.restore(); err != nil {
		return err
	}
	n.raft, err = raft.NewRawNode(&raft.Config{
		ID: n.opts.ID, ElectionTick: electionTicks, HeartbeatTick: heartbeatTicks,
		Storage: n.store, Applied: n.applied,
		MaxSizePerMsg: applyBytes, MaxCommittedSizePerReady: applyBytes, MaxInflightMsgs: queuedProposals,
		PreVote: true, CheckQuorum: true, StepDownOnRemoval: true, DisableProposalForwarding: true,
		Logger: libraryLog{n.opts.Log},
	})
	if err != nil {
		return err
	}
	if err := n.raft.Campaign(); err != nil {
		return err
	}
	return n.work()
}

// found starts a log with this node as its only voter, from the machine's
// first state.
func (n *Node) found() error {
	data, err := n.opts.Machine.Snapshot()
	if err != nil {
		return err
	}
	ops, meta := n.store.snapshotOps(firstIndex, 1, []uint64{n.opts.ID}, data)
	n.store.snap, n.store.last = meta, firstIndex
	n.store.hard = hardState{term: 1, commit: firstIndex}
	n.pending = append(ops, kv.Op{Key: hardKey, Value: n.store.hard.encode()})
	n.applied, n.appliedTerm = firstIndex, 1
	return nil
}

func (n *Node) restore() error {
	snap := n.store.snap
	if len(snap.voters) != 1 || snap.voters[0] != n.opts.ID {
		return fmt.Errorf("the log's voters are %x, but this data folder is %x: was meta.properties copied from another folder?",
			snap.voters, n.opts.ID)
	}
	data, err := n.store.readSnapshot()
	if err != nil {
		return err
	}
	if err := n.opts.Machine.Restore(data, snap.index, snap.term); err != nil {
		return fmt.Errorf("restore snapshot at %d: %w", snap.index, err)
	}
	n.applied, n.appliedTerm = snap.index, snap.term
	return nil
}

// Propose implements Log. It may be called from any goroutine.
func (n *Node) Propose(term uint64, data []byte) (index uint64, err error) {
	invariant.That(len(data) > 0, "an empty proposal")
	p := &proposal{term: term, data: data, outcome: make(chan error, 1)}
	select {
	case n.proposals <- p:
	case <-n.done:
		return 0, n.Err()
	}
	select {
	case err = <-p.outcome:
	case <-n.done:
		// The outcome may have come in the same moment.
		select {
		case err = <-p.outcome:
		default:
			err = n.Err()
		}
	}
	if err != nil {
		return 0, err
	}
	return p.index, nil
}

// Done is closed when the node has ended, by Close or by an error.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node ended: ErrClosed after Close. It is nil while it runs.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Close ends the node; what was committed stays. Proposals under way end with
// ErrClosed.
func (n *Node) Close() {
	n.stopOnce.Do(func() { close(n.stop) })
	<-n.done
}

func (n *Node) run() {
	defer close(n.done)
	for {
		select {
		case p := <-n.proposals:
			if err := n.propose(p); err != nil {
				n.err = fmt.Errorf("metadata log: %w", err)
				n.opts.Log.Error("metadata log failed; metadata can no longer change", "err", err)
				return
			}
		case <-n.stop:
			n.err = ErrClosed
			return
		}
	}
}

// readFailed is deferred around calls of the library, which panics when it cannot
// read the log.
func (n *Node) readFailed(err *error) {
	if n.store.failed == nil {
		return
	}
	if p := recover(); p != nil {
		*err = n.store.failed
	}
}

func (n *Node) propose(p *proposal) (err error) {
	defer n.readFailed(&err)
	status := n.raft.BasicStatus()
	if status.RaftState != raft.StateLeader || status.GetTerm() != p.term {
		p.outcome <- ErrNotLeader
		return nil
	}
	if err := n.raft.Propose(p.data); err != nil {
		p.outcome <- ErrNotLeader
		return nil
	}
	n.waiting = append(n.waiting, p)
	return n.work()
}

// work does everything the consensus core asks for: persist, then apply.
func (n *Node) work() error {
	for n.raft.HasReady() {
		rd := n.raft.Ready()
		// A lone voter's term alone need not be durable: nobody else has seen
		// it, and the entry that follows makes it so.
		sync := rd.MustSync && len(rd.Entries) > 0
		if err := n.store.save(rd.HardState, rd.Entries, n.pending, sync); err != nil {
			return err
		}
		n.pending = nil
		if sync && n.opts.Persisted != nil {
			n.opts.Persisted(n.store.last)
		}
		n.number(rd.Entries)
		if err := n.apply(rd.CommittedEntries); err != nil {
			return err
		}
		n.raft.Advance(rd)
	}
	n.tellStatus()
	return n.snapshotIfDue()
}

func (n *Node) tellStatus() {
	s := n.raft.BasicStatus()
	n.status.Store(&Status{
		Leads: s.RaftState == raft.StateLeader, Term: s.GetTerm(), Committed: s.GetCommit(), Last: n.store.last,
	})
}

// Status is what the log came to with the last decision. It may be called from any
// goroutine.
func (n *Node) Status() Status { return *n.status.Load() }

// number gives the proposals the indexes that the log chose: it keeps their
// order, and only this node's own term has their data.
func (n *Node) number(entries []*raftpb.Entry) {
	next := 0
	for _, e := range entries {
		if len(e.GetData()) == 0 {
			continue
		}
		for next < len(n.waiting) && n.waiting[next].index != 0 {
			next++
		}
		invariant.That(next < len(n.waiting), "entry %d was proposed by nobody", e.GetIndex())
		n.waiting[next].index = e.GetIndex()
	}
}

func (n *Node) apply(committed []*raftpb.Entry) error {
	if len(committed) == 0 {
		return nil
	}
	for _, e := range committed {
		// The leader's first entry of a term is empty; the machine does not see it.
		if len(e.GetData()) == 0 {
			continue
		}
		if err := n.opts.Machine.Apply(e.GetIndex(), e.GetTerm(), e.GetData()); err != nil {
			return fmt.Errorf("apply entry %d: %w", e.GetIndex(), err)
		}
	}
	last := committed[len(committed)-1]
	n.applied, n.appliedTerm = last.GetIndex(), last.GetTerm()
	n.sinceSnapshot += len(committed)
	n.store.forget(n.applied)
	n.announce()
	for len(n.waiting) > 0 && n.waiting[0].index != 0 && n.waiting[0].index <= n.applied {
		n.waiting[0].outcome <- nil
		n.waiting = n.waiting[1:]
	}
	return nil
}

// announce tells the machine once that this node leads, as soon as an entry of
// its own term is applied.
func (n *Node) announce() {
	status := n.raft.BasicStatus()
	if status.RaftState != raft.StateLeader || n.appliedTerm != status.GetTerm() || n.announced == n.appliedTerm {
		return
	}
	n.announced = n.appliedTerm
	n.opts.Machine.LeaderChange(n.opts.ID, n.appliedTerm, true)
}

func (n *Node) snapshotIfDue() error {
	if n.sinceSnapshot < n.opts.SnapshotEntries && n.store.logBytes < n.opts.SnapshotBytes {
		return nil
	}
	data, err := n.opts.Machine.Snapshot()
	if err != nil {
		return fmt.Errorf("snapshot at %d: %w", n.applied, err)
	}
	if err := n.store.saveSnapshot(n.applied, n.appliedTerm, data); err != nil {
		return fmt.Errorf("snapshot at %d: %w", n.applied, err)
	}
	n.sinceSnapshot = 0
	return nil
}

// libraryLog passes the consensus library's words on.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Debug(v ...any) { l.log.Debug("raft: " + fmt.Sprint(v...)) }
func (l libraryLog) Debugf(format string, v ...any) {
	l.log.Debug("raft: " + fmt.Sprintf(format, v...))
}
func (l libraryLog) Info(v ...any)                 { l.Debug(v...) }
func (l libraryLog) Infof(format string, v ...any) { l.Debugf(format, v...) }
func (l libraryLog) Warning(v ...any)              { l.log.Warn("raft: " + fmt.Sprint(v...)) }
func (l libraryLog) Warningf(format string, v ...any) {
	l.log.Warn("raft: " + fmt.Sprintf(format, v...))
}
func (l libraryLog) Error(v ...any) { l.log.Error("raft: " + fmt.Sprint(v...)) }
func (l libraryLog) Errorf(format string, v ...any) {
	l.log.Error("raft: " + fmt.Sprintf(format, v...))
}
func (l libraryLog) Fatal(v ...any)                 { l.Panic(v...) }
func (l libraryLog) Fatalf(format string, v ...any) { l.Panicf(format, v...) }
func (l libraryLog) Panic(v ...any)                 { invariant.That(false, "raft: %s", fmt.Sprint(v...)) }
func (l libraryLog) Panicf(format string, v ...any) { invariant.That(false, "raft: "+format, v...) }
