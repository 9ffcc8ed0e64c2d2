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
