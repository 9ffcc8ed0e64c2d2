package runtime

import (
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Gather puts an event to the machines of several partitions. It calls each with
// their answers, one at a time, and done after the last: with an error when one of
// them failed. A partition that went to another broker is asked there, and left
// out here.
func (rt *Runtime[E, R, A]) Gather(partitions []int32, event func(call uint64) E, each func(A), done func(error)) {
	var (
		mu     sync.Mutex
		left   = len(partitions) + 1
		failed error
	)
	add := func(take func()) {
		mu.Lock()
		take()
		left--
		last, err := left == 0, failed
		mu.Unlock()
		if last {
			done(err)
		}
	}
	for _, p := range partitions {
		rt.Submit(p, event, func(a A, err error) {
			add(func() {
				switch {
				case err == nil:
					each(a)
				case !errors.Is(err, kerr.NotCoordinator):
					failed = err
				}
			})
		})
	}
	add(func() {})
}
