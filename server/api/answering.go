package api

import "context"

// answeringMax is what answers may take together while they are laid out whose size
// depends on what there is and not on what was asked: those of all partitions. To lay
// one out keeps a processor busy, so that more of them at once would make none earlier.
const answeringMax = 32 << 20

// enterAnswer waits until there is room to lay out such an answer beside the others;
// leave gives it back. One of at most largeBytes, as all on an event loop are, does not
// wait.
func (h *Handlers) enterAnswer(sizeBytes int) (leave func()) {
	if sizeBytes <= largeBytes {
		return func() {}
	}
	n := min(int64(sizeBytes), answeringMax)
	// It has no error: there is no end to the wait, and n is at most the whole.
	_ = h.answering.Acquire(context.Background(), n)
	return func() { h.answering.Release(n) }
}
