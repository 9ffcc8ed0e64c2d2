//go:build !race

package protocol

// raceEnabled says that allocations cannot be measured and work is slow.
const raceEnabled = false
