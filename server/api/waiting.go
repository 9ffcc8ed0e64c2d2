package api

import "sync"

// waitingCalls are calls whose answers may have to wait for what other clients do, such
// as a member of a group for the others. A broker that stops does not wait with them.
type waitingCalls struct {
	mu      sync.Mutex
	stopped bool
	// ends has what answers each call instead.
	ends map[*Call]func()
}

// add notes a call; false when the broker stops, and nothing is to be waited for.
func (w *waitingCalls) add(c *Call, end func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	if w.ends == nil {
		w.ends = map[*Call]func(){}
	}
	w.ends[c] = end
	return true
}

// take forgets a call whose answer has come; false when it was answered already.
func (w *waitingCalls) take(c *Call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, waits := w.ends[c]
	delete(w.ends, c)
	return waits
}

func (w *waitingCalls) stop() {
	w.mu.Lock()
	w.stopped = true
	ends := w.ends
	w.ends = nil
	w.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// Stop answers the calls that wait for other clients, and all that would: they are
// told to look for the coordinator again.
func (h *Handlers) Stop() { h.waiting.stop() }

// answerLater has start answer a call, which may take until other clients have done
// something, or Stop if that comes first.
func answerLater[R any](h *Handlers, c *Call, stopped *R, start func(done func(*R)), reply func(*R)) {
	end := func() { h.guard(c, func() { reply(stopped) }) }
	if !h.waiting.add(c, end) {
		end()
		return
	}
	start(func(r *R) {
		if h.waiting.take(c) {
			h.guard(c, func() { reply(r) })
		}
	})
}
