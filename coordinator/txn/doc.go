// Package txn decides the transactions of the producers: a pure machine over the
// records of __transaction_state.
//
// # State
//
// The log has one record per transactional id, the newest counts: a Transaction
// with the producer id and epoch in force, the state, the partitions that are part
// of the transaction and when it began. Replay is the only thing that changes it.
// Beside it the machine remembers what a restart may forget: which markers are
// still to be written (completing), who waits for a transaction to end (waiting),
// and a producer's last epoch, which Kafka's record has no field for.
//
//	Empty -> Ongoing -> PrepareCommit -> CompleteCommit -> Ongoing or Empty
//	                 -> PrepareAbort  -> CompleteAbort  -> Ongoing or Empty
//
// A client ends a transaction, or it is aborted because its time-out has passed
// or because another producer asks for the id (InitProducerId); the last two raise
// the epoch, which fences the producer. Under transaction version 2 (KIP-890)
// every end raises it. The states Dead and PrepareEpochFence are Kafka's inner ones
// and never stand in a log.
//
// # Who owns what
//
// The machine decides everything. The runtime appends its records, replays them,
// and lets answers out once the high watermark has passed. What has to be done
// outside of the log is an answer without a call, an effect: write these markers,
// fetch a producer id. The Coordinator's driver does as it is told and replies
// with the outcome, each error code as it came; what to do about it is again the
// machine's decision. The partitions own their producers' state, the group
// coordinator the offsets that wait for a verdict.
//
// # Invariants
//
//  1. Markers are asked for only once Prepare is committed in the log, and Complete
//     is written only once each partition has its marker, or is gone. From Prepare on
//     the verdict never changes.
//  2. While a transaction is in Prepare nothing else happens to its id: whoever asks
//     is told CONCURRENT_TRANSACTIONS, or waits a little.
//  3. At most one attempt to write the markers of an id is on its way. No marker can
//     arrive after Complete and end a part of the next transaction.
//  4. An epoch that was told to a client is in the log before.
//
// # A crash
//
// Whatever is lost is everything after some append: of this log, of a partition,
// of __consumer_offsets.
//
//   - before Prepare: the transaction is Ongoing and goes on, or its time-out aborts
//     it; no partition has a marker. The client heard nothing and asks again.
//   - after Prepare, before, between or after the markers: Loaded finds Prepare and asks
//     for all markers again. A partition that has its marker takes the second one for
//     an end of nothing. A client that asks again is told CONCURRENT_TRANSACTIONS, and
//     after Complete what it would have heard the first time.
//   - after Complete: nothing is left to do.
package txn
