package producer

import (
	"fmt"
	"io"
)

// Dump prints a line per producer.
func (t *Table) Dump(w io.Writer) error {
	for _, e := range t.Entries() {
		last, _ := e.Last()
		_, err := fmt.Fprintf(w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %d lastTimestamp: %d firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d\n",
			e.ProducerID, e.Epoch, e.CoordinatorEpoch, e.CurrentTxnFirstOffset, e.LastTimestampMs,
			last.FirstSequence(), last.LastSequence, last.LastOffset, last.OffsetDelta)
		if err != nil {
			return err
		}
	}
	return nil
}
