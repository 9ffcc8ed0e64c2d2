//go:build !race

package batch

// raceEnabled says that allocations cannot be measured and work is slow.
const raceEnabled = false
