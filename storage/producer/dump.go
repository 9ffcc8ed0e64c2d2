package producer

import (
	"fmt"
	"io"
)

// Dump prints a line per producer.
func (t *Table) Dump(w io.Writer) error {
	for _, e := range t.Entries() {
		_, err := fmt.Fprintf(w, "producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %d lastTimestamp: %d",
			e.ProducerID, e.Epoch, e.CoordinatorEpoch, e.CurrentTxnFirstOffset, e.LastTimestampMs)
		if last, ok := e.Last(); ok && err == nil {
			_, err = fmt.Fprintf(w, " firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d",
				last.FirstSequence(), last.LastSequence, last.LastOffset, last.OffsetDelta)
		}
		if err == nil {
			_, err = fmt.Fprintln(w)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
