// Package leak finds goroutines that a package's tests leave behind. Only tests import
// it.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/clock"
)

// Run runs a package's tests and returns the exit code: not 0 either when goroutines
// that were not there before are still there after patience. One look takes half a
// second, in which a busy machine ends nothing.
func Run(m *testing.M, patience time.Duration) int {
	before := goleak.IgnoreCurrent() // some packages start goroutines that never end
	if code := m.Run(); code != 0 {
		return code
	}
	clk := clock.Real() // it counts from here
	for {
		err := goleak.Find(before)
		if err == nil {
			return 0
		}
		if clk.Elapsed() > patience {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
}
