package api

import "sync/atomic"

// gather starts n requests and calls all with their answers, in the order of the
// requests, when the last has come. It never waits.
func gather[T any](n int, start func(i int, done func(T)), all func([]T)) {
	answers := make([]T, n)
	var left atomic.Int64
	left.Store(int64(n) + 1)
	one := func() {
		if left.Add(-1) == 0 {
			all(answers)
		}
	}
	for i := range n {
		start(i, func(answer T) {
			answers[i] = answer
			one()
		})
	}
	one()
}

// gatherKept is gather for answers whose size the requests do not tell: when all of
// them together would be too large, the client is hung up on instead.
func gatherKept[T any](c *Call, n int, start func(i int, done func(T)), all func([]T)) {
	var over atomic.Bool
	gather(n, func(i int, done func(T)) {
		start(i, func(answer T) {
			if over.Load() || !c.keep(answer) {
				over.Store(true)
				var none T
				answer = none
			}
			done(answer)
		})
	}, func(answers []T) {
		if over.Load() {
			c.hangupTooLarge()
			return
		}
		all(answers)
	})
}
