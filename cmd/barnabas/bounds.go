package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
)

// The numbers that requests have room for.
const (
	mostPartitions = math.MaxInt32
	mostReplicas   = math.MaxInt16
)

// within makes a flag's check: its number is one from low to high, or the one that
// stands for the default.
func within[N int | int64](flag string, low, high N, byDefault ...N) func(*cli.Context, N) error {
	want := fmt.Sprintf("want a whole number from %d on", low)
	if uint64(high) < math.MaxInt64 {
		want = fmt.Sprintf("want a whole number from %d to %d", low, high)
	}
	return func(_ *cli.Context, n N) error {
		for _, d := range byDefault {
			if n == d {
				return nil
			}
		}
		if n < low || n > high {
			return usagef("--%s %d: %s", flag, n, want)
		}
		return nil
	}
}

// notNegative is the check of a flag that is a duration.
func notNegative(flag string) func(*cli.Context, time.Duration) error {
	return func(_ *cli.Context, d time.Duration) error {
		if d < 0 {
			return usagef("--%s %v: want a duration that is not negative", flag, d)
		}
		return nil
	}
}

// parseOffset reads an offset: a number that is not negative.
func parseOffset(s string) (offset int64, ok bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n >= 0
}
