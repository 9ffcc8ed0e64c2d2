//go:build !unix

package network_test

func cpuTime() int64 { return 0 }
